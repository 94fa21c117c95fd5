"""EMIT: which rows the queries of a round report of their answers: changes, windows without tuples, early rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain

import pyarrow as pa

from windloom.engine.sinks.finishing import plain
from windloom.engine.sinks.tables import AnswerTables
from windloom.errors import WindloomError
from windloom.model.emission import ADDED_COLUMNS, Emits
from windloom.model.query import Query
from windloom.model.time import TICK_MAX
from windloom.plan.physical import Plan, Planned, Shape
from windloom.rounds import Block, State
from windloom.rounds.early import EarlyTurn, early_turns
from windloom.rounds.emission import Emitted, Pace, changes, early_rows, paces_of
from windloom.rounds.emission.early import all_final
from windloom.rounds.emission.emitted import of_queries, united
from windloom.rounds.emission.empty import empty_block, group_rows, group_schema, missing_rows


class RoundEmission:
    """`before` is what was reported up to the round, in terms of its plan; the round led from `begun` to `state`.

    Blocks and rows pass through it, once or several times; when all rows have passed, it `is_complete`. What they leave
    in `emitted` depends only on them.
    """

    def __init__(self, plan: Plan, begun: State, state: State, tables: AnswerTables, before: Emitted) -> None:
        self._plan, self._begun, self._state, self._tables, self._before = plan, begun, state, tables, before
        self.emitted, self.is_complete = before, False

    @cached_property
    def _asked(self) -> dict[Emits, dict[int, list[Planned]]]:
        """Queries that report more than final rows, by emission and by number of their shape."""
        numbers = {number: shape.emits for number, shape in enumerate(self._plan.shapes)}
        emitting = {number: kind for number, kind in numbers.items() if kind is not Emits.FINAL}
        found: dict[Emits, dict[int, list[Planned]]] = {kind: {} for kind in Emits}
        for planned in self._plan.queries if emitting else ():
            if planned.shape in emitting:
                found[emitting[planned.shape]].setdefault(planned.shape, []).append(planned)
        return found

    @property
    def _changing(self) -> dict[int, list[Planned]]:
        return self._asked[Emits.CHANGES]

    @property
    def _filled(self) -> dict[int, list[Planned]]:
        return self._asked[Emits.EMPTY]

    @property
    def _early(self) -> dict[int, list[Planned]]:
        return self._asked[Emits.EARLY]

    @cached_property
    def _turns(self) -> dict[str, EarlyTurn]:
        return early_turns(self._plan, self._begun, self._state)

    @property
    def is_needed(self) -> bool:
        """Whether later reports depend on what this round reports; with no window open, no row is provisional."""
        has_open = bool(self._early) and any(turn.closed < TICK_MAX for turn in self._turns.values())
        return bool(self._changing or self._filled) or has_open

    @cached_property
    def _paces(self) -> dict[str, Pace]:
        asked = (planned for held in (self._changing, self._filled) for own in held.values() for planned in own)
        return paces_of(asked, self._state)

    def until(self, planned: Planned) -> int:
        """The tick up to which all windows of a query have been reported."""
        return paces_of([planned], self._state)[planned.name].until

    def blocks(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """The blocks of the step, and then rows of windows without tuples, for queries that report them."""
        seen: dict[int, list[pa.Table]] = {}
        for block in blocks:
            if block.shape in self._filled:
                seen.setdefault(block.shape, []).append(group_rows(block, self._plan.shapes[block.shape]))
            yield block
        left = []
        for number, queries in self._filled.items():
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
        self.emitted = Emitted(self.emitted.standing, united(left))

    def rows(self, finished: Iterable[tuple[Shape, pa.Table]]) -> Iterator[tuple[Shape, pa.Table]]:
        """The rows that queries report: all finished rows, or their changes, or early rows."""
        held: dict[Shape, list[pa.Table]] = {}
        for shape, table in finished:
            if shape.emits in ADDED_COLUMNS:
                held.setdefault(shape, []).append(plain(table))
            else:
                yield shape, table
        left = []
        for number, queries in chain(self._changing.items(), self._early.items()):
            shape = self._plan.shapes[number]
            name, names = self._tables.name(shape), [query.name for query in queries]
            standing = None if name not in self._before.standing else of_queries(self._before.standing[name], names)
            parts = held.get(shape, [] if standing is None else [standing.slice(0, 0)])
            if not parts:
                continue
            rows = pa.concat_tables(parts)
            if shape.emits is Emits.CHANGES:
                told, stands = changes(standing, rows, len(shape.groups), self._paces)
            else:
                told, stands = early_rows(standing, rows, len(shape.groups), self._turns)
            left.append((name, stands))
            yield shape, told
        self.emitted, self.is_complete = Emitted(united(left), self.emitted.known), True


def reported(rows: pa.Table, planned: Planned, shape: Shape, state: State) -> pa.Table:
    """The rows that a batch run reports of a query, from the finished rows of all its windows, without `query`."""
    if shape.emits is Emits.EARLY:
        return all_final(plain(rows))
    if shape.emits is not Emits.CHANGES:
        return rows
    named = rows.add_column(0, "query", pa.repeat(pa.scalar(planned.name), rows.num_rows))
    found, _ = changes(None, plain(named), len(shape.groups), paces_of([planned], state))
    return found.drop_columns("query")


def refuse_emission(query: Query) -> None:
    """Raises for a question with EMIT: it is answered once, and nothing is reported before or after it."""
    if query.emission.kind is not Emits.FINAL:
        raise WindloomError(
            f"a question cannot have {query.emission}",
            "it is answered once, with every window that is closed",
            "leave EMIT out, or add the query to the stream",
        )
