"""Queries that report rows of windows instead of aggregates."""
