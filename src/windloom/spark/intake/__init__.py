"""Takes in tuples with Spark: natively aggregated, or projected and woven; on the driver or on executors."""
