"""Verification: compares every row with Spark's own windows."""
