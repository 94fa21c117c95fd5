"""Verification: every row compared with Spark's own windows."""
