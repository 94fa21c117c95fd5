"""Folds: kernels that join rows of two sides by key and end, and add up what they hold, pair by pair."""
