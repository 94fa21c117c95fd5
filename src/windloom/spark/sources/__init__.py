"""Where tuples come from and where files are kept: readers, file streams, storage that Spark can reach."""
