"""Rounds: a pure step from partials and a watermark to answers; a batch run is one round with watermark +∞."""

from windloom.rounds.answers import Answers, Block
from windloom.rounds.ask import ask
from windloom.rounds.carry import carry
from windloom.rounds.state import State
from windloom.rounds.step import step

__all__ = ["Answers", "Block", "State", "ask", "carry", "step"]
