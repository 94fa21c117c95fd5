"""The rows of answers that are reported: changes from window to window, rows of windows without tuples, early rows."""

from windloom.rounds.emission.changes import changes
from windloom.rounds.emission.early import early_rows
from windloom.rounds.emission.emitted import Emitted
from windloom.rounds.emission.series import Pace, paces_of

__all__ = ["Emitted", "Pace", "changes", "early_rows", "paces_of"]
