"""How windows are written: one file per kind, in brackets after a stream or as Spark's own function."""
