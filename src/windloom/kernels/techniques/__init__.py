"""Techniques of final aggregation, one file each; the registry lists them by name."""
