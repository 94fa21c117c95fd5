"""The façade for users: register streams and queries, explain, run, verify."""

from windloom.engine.loom import Loom
from windloom.engine.results import Results, RunStats

__all__ = ["Loom", "Results", "RunStats"]
