"""Rounds: a pure step from partials and a watermark to answers; a batch run is one round with watermark +∞."""

from windloom.rounds.answers import Answers, Block
from windloom.rounds.state import State
from windloom.rounds.step import step

__all__ = ["Answers", "Block", "State", "step"]
