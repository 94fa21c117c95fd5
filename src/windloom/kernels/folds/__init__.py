"""Folds: kernels that join rows of two sides by key and end, and add up their values, pair by pair."""
