"""`windloom demo`: a catalog, a run that is compared with Spark, a report."""
