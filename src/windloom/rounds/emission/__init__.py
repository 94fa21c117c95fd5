"""Which rows of answers are reported: changes from window to window, and rows of windows without tuples."""

from windloom.rounds.emission.changes import changes
from windloom.rounds.emission.emitted import Emitted
from windloom.rounds.emission.series import Pace, paces_of

__all__ = ["Emitted", "Pace", "changes", "paces_of"]
