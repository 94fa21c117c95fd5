"""Folds: kernels that join rows of two sides by key and window end."""
