"""The syntax of every kind of window; one file per kind."""
