"""Memory: every row stays on the driver, for notebooks, tests and streams that end."""

from __future__ import annotations

from typing import ClassVar, Self

import pyarrow as pa

from windloom.answers.blocks import Block
from windloom.errors import WindloomError
from windloom.model.formatting import size_text
from windloom.sinks.sink import RoundAnswers, Sink, SinkPlace


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
    """Holds the answers of a batch run as they were made, to be finished query by query when they are asked for."""

    def __init__(self, most_bytes: int | None = None) -> None:
        """`most_bytes` bounds the memory of blocks; the round fails before it holds more."""
        self.blocks: list[Block] = []
        self.nbytes, self._most_bytes = 0, most_bytes

    @property
    def is_bounded(self) -> bool:
        return self._most_bytes is not None

    def write(self, round: int, answers: RoundAnswers) -> None:
        self.blocks, self.nbytes = [], 0
        for block in answers.blocks():
            self.nbytes += block.table.nbytes
            if self._most_bytes is not None and self.nbytes > self._most_bytes:
                rows = sum(held.table.num_rows for held in self.blocks)
                self.blocks = []
                raise WindloomError(
                    f"the answers do not fit into memory={size_text(self._most_bytes)}",
                    f"{rows:,} rows took that much, and there are more",
                    "write them to a directory instead, which needs little memory: out='answers'; or give more memory",
                )
            self.blocks.append(block)
