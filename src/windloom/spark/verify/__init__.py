"""Verification: every row is compared with Spark's own windows."""
