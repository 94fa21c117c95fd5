"""Relations on Spark: whether a version has changed, its cells, and streams that are joined with it as tuples come."""
