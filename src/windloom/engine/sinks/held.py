"""Held: the answers of a batch run as they were made, finished query by query when they are asked for."""

from __future__ import annotations

import pyarrow as pa

from windloom.engine.sinks.sink import RoundAnswers
from windloom.rounds import Block
from windloom.spark.answers.executors import WideAnswers


class HeldAnswers:
    """Holds blocks if the driver ran the step, otherwise a frame that Spark holds."""

    pieces = None

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.wide: WideAnswers | None = None

    def write(self, round: int, answers: RoundAnswers) -> None:
        self.wide = answers.wide
        self.blocks = list(answers.blocks()) if self.wide is None else []

    def rows(self, table: str) -> pa.Table | None:
        return None

    def close(self) -> None:
        """Do nothing: from now on, the results hold the answers."""
