"""EXPLAIN as a picture."""
