"""Sinks take answers, round by round; a batch run is one round. Every sink may be given the same round again."""
