"""Where tuples come from and where files are kept."""
