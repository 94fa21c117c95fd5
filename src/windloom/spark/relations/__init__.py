"""Relations on Spark: whether a version has changed, its cells, and enriched streams."""
