"""Where tuples come from and files are kept: readers, file streams, storage that Spark reaches."""
