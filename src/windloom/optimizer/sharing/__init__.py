"""Sharing: which queries form a tree; one file a strategy."""
