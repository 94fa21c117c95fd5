"""Memory: every row stays on the driver, for notebooks, tests and streams that end."""

from __future__ import annotations

from typing import ClassVar, Self

import pyarrow as pa

from windloom.engine.sinks.sink import RoundAnswers, SinkPlace


class MemorySink:
    target: ClassVar[str | None] = None
    pieces = None

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

    def close(self) -> None:
        """Do nothing: the rows stay readable when the stream has ended."""
