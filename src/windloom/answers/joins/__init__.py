"""Joins: the answers of their sides, matched and folded by key and window end."""
