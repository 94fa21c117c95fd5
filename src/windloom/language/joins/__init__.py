"""Joins over windowed streams, taken apart into sides, links and conditions."""
