"""The answers of a round on their way to sinks: as blocks of the step, as finished rows, or held by Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

import pyarrow as pa

from windloom.durable.shards.pieces import Piece, PieceFolder
from windloom.engine.running.emission import RoundEmission
from windloom.engine.running.placement import Outcome
from windloom.engine.sinks.sink import TableInfo
from windloom.engine.sinks.tables import AnswerTables
from windloom.errors import WindloomError
from windloom.plan.physical import Plan
from windloom.rounds import Block
from windloom.rounds.emission import Emitted
from windloom.spark.answers.executors import WideAnswers


class MadeAnswers:
    """Answers are made while they are written; if several sinks take them (`is_shared`), they are made once.

    `made` counts rows as the step made them, `finished` the rows that are left after HAVING and EMIT.
    """

    def __init__(
        self,
        plan: Plan,
        outcome: Outcome,
        tables: AnswerTables,
        told: Callable[[int], None],
        folder: PieceFolder | None,
        emission: RoundEmission,
        *,
        is_shared: bool,
    ) -> None:
        self._plan, self._outcome, self._tables, self._told = plan, outcome, tables, told
        self._folder, self._is_shared, self._emission = folder, is_shared, emission
        self._kept: list[tuple[str, pa.Table]] | None = None
        self._held = 0 if outcome.wide is None else outcome.wide.totals.rows
        self.made, self.finished = self._held, self._held + self._in_pieces

    @property
    def wide(self) -> WideAnswers | None:
        return self._outcome.wide

    @cached_property
    def tables(self) -> Mapping[str, TableInfo]:
        return self._tables.infos(self._plan)

    @property
    def _in_pieces(self) -> int:
        return sum(piece.rows for piece in self._outcome.pieces)

    def blocks(self) -> Iterator[Block]:
        self.made = self._held  # a sink that was down reads again from the start
        for block in self._emission.blocks(self._outcome.blocks()):
            self.made += block.table.num_rows
            yield block
            self._told(self.made)

    @property
    def pieces(self) -> Sequence[Piece]:
        return self._outcome.pieces

    def rows(self, *, with_pieces: bool = True) -> Iterable[tuple[str, pa.Table]]:
        read = self._read_pieces() if with_pieces else iter(())
        if not self._is_shared:
            return chain(self._rows(), read)
        if self._kept is None:
            self._kept = list(self._rows())
        return chain(self._kept, read)

    def until(self, query: str) -> int:
        return self._emission.until(self._plan.query(query))

    def schema(self, query: str) -> pa.Schema:
        shape = self._plan.shapes[self._plan.query(query).shape]
        return self._tables.empty(shape).drop_columns("query").schema

    def reported(self) -> Emitted:
        """Return what queries have reported when the round is done, also if no sink has asked for rows."""
        if not self._emission.is_needed:
            return Emitted()
        if not self._emission.is_complete:
            for _ in self._rows():
                pass
        return self._emission.emitted

    def _read_pieces(self) -> Iterator[tuple[str, pa.Table]]:
        """The rows in pieces, for other sinks: when the round began, the sink that takes pieces was the only one."""
        for piece in self.pieces:
            if self._folder is None:
                raise WindloomError(
                    f"the rows '{piece.file}' of table '{piece.table}' cannot be read",
                    "shards have written them for the Parquet sink, and the stream has none now",
                    "start once more with the sink and the path that it had",
                )
            yield piece.table, self._folder.read(piece)

    def _rows(self) -> Iterator[tuple[str, pa.Table]]:
        self.finished = self._held + self._in_pieces
        for shape, table in self._emission.rows(self._tables.pieces(self._plan, self.blocks())):
            self.finished += table.num_rows
            if table.num_rows:
                yield self._tables.name(shape), table
