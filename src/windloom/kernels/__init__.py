"""Compiled loops over arrays, which know nothing of queries."""
