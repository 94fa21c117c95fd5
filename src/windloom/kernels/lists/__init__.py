"""Kernels over cells that hold lists of values with counts: holistic aggregates and sketches."""
