"""Sharing: which queries form a tree; one file per strategy."""
