"""Kernels that find and merge cells: lanes, runs of cells, merging."""
