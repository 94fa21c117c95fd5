"""Rounds: a pure step from the input of a round to answers; a batch run is one round with every frontier at +∞."""

from windloom.rounds.answers import Answers
from windloom.rounds.ask import ask
from windloom.rounds.block import Block
from windloom.rounds.carry import carry
from windloom.rounds.round_input import RoundInput
from windloom.rounds.state import State
from windloom.rounds.step import step

__all__ = ["Answers", "Block", "RoundInput", "State", "ask", "carry", "step"]
