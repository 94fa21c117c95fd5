"""`windloom demo`: a catalog, a run that is compared with Spark, and a report."""
