"""Joins: several windowed streams in one query, taken apart into sides, links and folds (`model.join`)."""
