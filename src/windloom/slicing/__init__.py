"""Partial aggregation: where a stream is cut into slices, and the number of edges."""
