"""Kernels over cells that hold lists of values with counts."""
