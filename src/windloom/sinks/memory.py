"""Memory: every row stays on the driver, for notebooks, tests and streams that end."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa

from windloom.answers.blocks import Block
from windloom.sinks.sink import RoundAnswers, Sink, SinkPlace

if TYPE_CHECKING:
    from windloom.spark.executors.answers import WideAnswers


class MemorySink(Sink):
    target: ClassVar[str | None] = None

    def __init__(self) -> None:
        self._rounds: dict[str, dict[int, list[pa.Table]]] = {}

    @classmethod
    def open(cls, place: SinkPlace) -> Self:
        return cls()

    def write(self, round: int, answers: RoundAnswers) -> None:
        for rounds in self._rounds.values():
            rounds.pop(round, None)
        for name, rows in answers.rows():
            self._rounds.setdefault(name, {}).setdefault(round, []).append(rows)

    def rows(self, table: str) -> pa.Table | None:
        rounds = dict(self._rounds.get(table, {}))  # a round may be written at the same time
        pieces = [piece for _, round_pieces in sorted(rounds.items()) for piece in round_pieces]
        return pa.concat_tables(pieces) if pieces else None


class HeldAnswers(Sink):
    """Holds the answers of a batch run as they were made, to be finished query by query when they are asked for.

    These are blocks if the driver ran the step, otherwise a frame that Spark holds.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.wide: WideAnswers | None = None

    def write(self, round: int, answers: RoundAnswers) -> None:
        self.wide = answers.wide
        self.blocks = list(answers.blocks()) if self.wide is None else []
