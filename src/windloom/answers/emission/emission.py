"""The rows that queries have reported, as far as these decide what they report next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from windloom.model.clauses import Emits
from windloom.plan.plan import Plan
from windloom.state.plan_change import is_same


@dataclass(frozen=True, slots=True)
class ReportedRows:
    """`standing` are rows that were reported last and have not vanished, by name of their table (EMIT CHANGES).

    With EMIT EARLY, they are the provisional rows of open windows.

    `known` are groups, each with the last window that was reported, by the types of their grouping columns (EMIT
    EMPTY). The first column of all tables is `query`.
    """

    standing: Mapping[str, pa.Table] = field(default_factory=dict)
    known: Mapping[str, pa.Table] = field(default_factory=dict)

    def carried(self, old: Plan, new: Plan) -> ReportedRows:
        """Return what remains when another plan runs: queries that are new, or replaced, have reported nothing."""
        if not self.standing and not self.known:
            return self
        before = {planned.name: planned.query for planned in old.queries}
        staying = [planned for planned in new.queries if planned.name in before]
        unchanged = {planned.name for planned in staying if is_same(before[planned.name], planned.query)}
        # A new query of the same name withdraws, in its first round, provisional rows that it does not report itself.
        early = {planned.name for planned in staying if planned.query.emission.kind is Emits.EARLY}
        early = {name for name in early if before[name].emission.kind is Emits.EARLY}
        return replace(
            self,
            standing={key: of_queries(table, unchanged | early) for key, table in self.standing.items()},
            known={key: of_queries(table, unchanged) for key, table in self.known.items()},
        )


def of_queries(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return the rows of some queries."""
    return table.filter(pc.is_in(table["query"], value_set=pa.array(sorted(names), pa.string())))


def united(tables: Iterable[tuple[str, pa.Table]]) -> dict[str, pa.Table]:
    """Return the tables of each key as one table; keys without rows are left out."""
    tables_by_key: dict[str, list[pa.Table]] = {}
    for key, table in tables:
        if table.num_rows:
            tables_by_key.setdefault(key, []).append(table)
    return {key: pa.concat_tables(parts) for key, parts in tables_by_key.items()}
