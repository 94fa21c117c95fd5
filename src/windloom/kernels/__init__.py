"""Final aggregation: one file per technique behind one small interface, compiled, for all queries of a tree at once."""

from windloom.kernels.techniques.registry import TECHNIQUES, allowed, choose_technique, permits

__all__ = ["TECHNIQUES", "allowed", "choose_technique", "permits"]
