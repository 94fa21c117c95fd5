"""Families of values: how cells of a component are combined, and their columns."""
