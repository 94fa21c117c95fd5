"""The answers of a round on their way to sinks: as blocks of the step, or as finished rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import pyarrow as pa

from windloom.answers.blocks import Block
from windloom.answers.emission.changes import ReportCadence, changes, paces_of
from windloom.answers.emission.early import EarlyTurn, all_final, early_rows, early_turns
from windloom.answers.emission.emission import ReportedRows, of_queries, united
from windloom.answers.emission.empty import empty_block, group_rows, group_schema, missing_rows
from windloom.model.clauses import ADDED_COLUMNS, Emits
from windloom.model.time import TICK_MAX
from windloom.plan.plan import Plan, Planned, Shape
from windloom.rounds.step import StepCounts
from windloom.sinks.sink import TableInfo
from windloom.sinks.tables import AnswerTables, plain
from windloom.state.state import State
from windloom.statistics.observations import RoundObserved


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a round, already logged. Until the round is committed, `blocks` returns its answers, repeatedly.

    `took` has the seconds of each unit of queries answered together, by the name of its first query, once the answers
    have been read.
    """

    state: State
    state_bytes: int
    counts: StepCounts
    observed: RoundObserved
    untimed: Mapping[str, int] = field(default_factory=dict)
    blocks: Callable[[], Iterable[Block]] = tuple
    lost: Sequence[str] = ()
    took: Mapping[str, float] = field(default_factory=dict)
    late_from: Mapping[str, int] = field(default_factory=dict)  # by stream, the least tick of tuples that came late


class RoundEmission:
    """Selects what the queries of a round report (EMIT): changes, rows of windows without tuples, early rows.

    `before` is what was reported up to the round, in terms of its plan; the round led from `begun` to `state`.

    Blocks and rows pass through it, once or several times; when all rows have passed, it `is_complete`. What they leave
    in `emitted` depends only on them.
    """

    def __init__(self, plan: Plan, begun: State, state: State, tables: AnswerTables, before: ReportedRows) -> None:
        self._plan, self._begun, self._state, self._tables, self._before = plan, begun, state, tables, before
        self.emitted, self.is_complete = before, False

    @cached_property
    def _queries(self) -> dict[Emits, dict[int, list[Planned]]]:
        """Queries that report more than final rows, by emission and by number of their shape."""
        numbers = {number: shape.emits for number, shape in enumerate(self._plan.shapes)}
        emitting = {number: kind for number, kind in numbers.items() if kind is not Emits.FINAL}
        queries: dict[Emits, dict[int, list[Planned]]] = {kind: {} for kind in Emits}
        for planned in self._plan.queries if emitting else ():
            if planned.shape in emitting:
                queries[emitting[planned.shape]].setdefault(planned.shape, []).append(planned)
        return queries

    @cached_property
    def _turns(self) -> dict[str, EarlyTurn]:
        return early_turns(self._plan, self._begun, self._state)

    @property
    def is_needed(self) -> bool:
        """Whether later reports depend on what this round reports; with no window open, no row is provisional."""
        if self._queries[Emits.CHANGES] or self._queries[Emits.EMPTY]:
            return True
        return bool(self._queries[Emits.EARLY]) and any(turn.closed < TICK_MAX for turn in self._turns.values())

    @cached_property
    def _paces(self) -> dict[str, ReportCadence]:
        by_shape = chain(self._queries[Emits.CHANGES].values(), self._queries[Emits.EMPTY].values())
        return paces_of(chain.from_iterable(by_shape), self._state)

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yield the blocks of the step, then rows of windows without tuples, for queries that report them."""
        filled = self._queries[Emits.EMPTY]
        seen: dict[int, list[pa.Table]] = {}
        for block in blocks:
            if block.shape in filled:
                seen.setdefault(block.shape, []).append(group_rows(block, self._plan.shapes[block.shape]))
            yield block
        left = []
        for number, queries in filled.items():
            shape = self._plan.shapes[number]
            # The names and types of the groups, which queries of different shapes may share.
            key = ", ".join(f"{name} {kind.name}" for name, kind in (("", shape.time), *shape.groups))
            names = [query.name for query in queries]
            known = None if key not in self._before.known else of_queries(self._before.known[key], names)
            rows = pa.concat_tables(seen.get(number) or [group_schema(shape).empty_table()])
            missing, last = missing_rows(known, rows, self._paces)
            left.append((key, last))
            if missing.num_rows:
                yield empty_block(number, shape, queries, missing)
        self.emitted = ReportedRows(self.emitted.standing, united(left))

    def rows(self, finished: Iterable[tuple[Shape, pa.Table]]) -> Iterator[tuple[Shape, pa.Table]]:
        """Yield the rows that queries report: all finished rows, or their changes, or early rows."""
        waiting: dict[Shape, list[pa.Table]] = {}
        for shape, table in finished:
            if shape.emits in ADDED_COLUMNS:
                waiting.setdefault(shape, []).append(plain(table))
            else:
                yield shape, table
        left = []
        for number, queries in chain(self._queries[Emits.CHANGES].items(), self._queries[Emits.EARLY].items()):
            shape = self._plan.shapes[number]
            name, names = self._tables.name(shape), [query.name for query in queries]
            standing = None if name not in self._before.standing else of_queries(self._before.standing[name], names)
            parts = waiting.get(shape, [] if standing is None else [standing.slice(0, 0)])
            if not parts:
                continue
            rows = pa.concat_tables(parts)
            if shape.emits is Emits.CHANGES:
                report, stands = changes(standing, rows, len(shape.groups), self._paces)
            else:
                report, stands = early_rows(standing, rows, len(shape.groups), self._turns)
            left.append((name, stands))
            yield shape, report
        self.emitted, self.is_complete = ReportedRows(united(left), self.emitted.known), True


def reported(rows: pa.Table, planned: Planned, shape: Shape, state: State) -> pa.Table:
    """Return the rows that a batch run reports of a query, from the finished rows of all its windows."""
    if shape.emits is Emits.EARLY:
        return all_final(plain(rows))
    if shape.emits is not Emits.CHANGES:
        return rows
    named = rows.add_column(0, "query", pa.repeat(pa.scalar(planned.name), rows.num_rows))
    report, _ = changes(None, plain(named), len(shape.groups), paces_of([planned], state))
    return report.drop_columns("query")


class RoundRows:
    """Answers are made while they are written; if several sinks take them (`is_shared`), they are made once.

    `made` counts rows as the step made them, `finished` the rows that are left after HAVING and EMIT.
    """

    def __init__(
        self,
        plan: Plan,
        outcome: Outcome,
        tables: AnswerTables,
        on_rows: Callable[[int], None],
        emission: RoundEmission,
        *,
        is_shared: bool,
    ) -> None:
        self._plan, self._outcome, self._tables, self._on_rows = plan, outcome, tables, on_rows
        self._is_shared, self._emission = is_shared, emission
        self._shared: list[tuple[str, pa.Table]] | None = None
        self.made = 0
        self.finished = 0

    @cached_property
    def tables(self) -> Mapping[str, TableInfo]:
        return self._tables.infos(self._plan)

    def blocks(self) -> Iterator[Block]:
        self.made = 0  # a sink that was down reads again from the start
        for block in self._emission.blocks(self._outcome.blocks()):
            self.made += block.table.num_rows
            yield block
            self._on_rows(self.made)

    def rows(self) -> Iterable[tuple[str, pa.Table]]:
        if not self._is_shared:
            return self._rows()
        self._shared = self._shared if self._shared is not None else list(self._rows())
        return self._shared

    def until(self, query: str) -> int:
        return paces_of([self._plan.query(query)], self._outcome.state)[query].until

    def schema(self, query: str) -> pa.Schema:
        shape = self._plan.shapes[self._plan.query(query).shape]
        return self._tables.empty(shape).drop_columns("query").schema

    def reported(self) -> ReportedRows:
        """Return what queries have reported when the round is done, also if no sink has asked for rows."""
        if not self._emission.is_needed:
            return ReportedRows()
        if not self._emission.is_complete:
            for _ in self._rows():
                pass
        return self._emission.emitted

    def _rows(self) -> Iterator[tuple[str, pa.Table]]:
        self.finished = 0
        for shape, table in self._emission.rows(self._tables.pieces(self._plan, self.blocks())):
            self.finished += table.num_rows
            if table.num_rows:
                yield self._tables.name(shape), table
