"""The answers of a round on their way to sinks: as blocks of the step, as finished rows, or held by Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

import pyarrow as pa

from windloom.engine.running.placement import Outcome
from windloom.engine.sinks.sink import TableInfo
from windloom.engine.sinks.tables import AnswerTables
from windloom.plan.physical import Plan
from windloom.rounds import Block
from windloom.spark.answers.executors import WideAnswers


class MadeAnswers:
    """Answers are made while they are written; sinks that share them (`is_shared`) share one making.

    `made` counts rows as the step made them, `finished` those that are left by HAVING.
    """

    def __init__(
        self,
        plan: Plan,
        outcome: Outcome,
        tables: AnswerTables,
        told: Callable[[int], None],
        *,
        is_shared: bool,
    ) -> None:
        self._plan, self._outcome, self._tables, self._told = plan, outcome, tables, told
        self._is_shared = is_shared
        self._kept: list[tuple[str, pa.Table]] | None = None
        self.made = 0 if outcome.wide is None else outcome.wide.totals.rows
        self.finished = self.made

    @property
    def wide(self) -> WideAnswers | None:
        return self._outcome.wide

    @cached_property
    def tables(self) -> Mapping[str, TableInfo]:
        return self._tables.infos(self._plan)

    def blocks(self) -> Iterator[Block]:
        for block in self._outcome.blocks:
            self.made += block.table.num_rows
            yield block
            self._told(self.made)

    def rows(self) -> Iterable[tuple[str, pa.Table]]:
        if not self._is_shared:
            return self._rows()
        if self._kept is None:
            self._kept = list(self._rows())
        return self._kept

    def _rows(self) -> Iterator[tuple[str, pa.Table]]:
        for shape, table in self._tables.pieces(self._plan, self.blocks()):
            self.finished += table.num_rows
            if table.num_rows:
                yield self._tables.name(shape), table
