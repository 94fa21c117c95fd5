"""Everything that touches Spark; no other room imports pyspark."""
