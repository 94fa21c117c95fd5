"""Reads the plans of DataFrames that users have written, as queries of our own language."""
