"""Relations without a JVM: their versions are lists of rows, and what Spark does with them is done in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from support.native import tuples_table
from windloom.answers.joins.sides import no_cells
from windloom.model import Enrichment, JoinKind
from windloom.plan.plan import Plan, PlannedRelation
from windloom.spark.relations import TakenVersion
from windloom.weave.round_input import take_tuples
from windloom_tools.oracle.scalars import scalar

Row = dict[str, Any]
Rows = Sequence[Row]
Frames = Mapping[str, Rows]


@dataclass(frozen=True)
class SeenRows:
    """Rows that gave a version; only one and the same list is sure to be the same version."""

    rows: Rows

    def is_same(self, frame: Rows) -> bool:
        return frame is self.rows


class RowVersions:
    """What Spark does with relations in a round; `taken` counts how often rows were read."""

    def __init__(self) -> None:
        self.taken = 0

    def seen(self, frame: Rows) -> SeenRows:
        return SeenRows(frame)

    def size(self, frame: Rows, seen: SeenRows) -> tuple[int | None, int]:
        return len(frame), 0

    def take(self, plan: Plan, planned: PlannedRelation, frame: Rows) -> TakenVersion:
        self.taken += 1
        found = {number: no_cells(plan.sets[number]) for number in planned.sets}
        if planned.scan is None:
            return TakenVersion(found, 0)
        table = tuples_table(plan, planned.scan, [{"tick": 0, **row} for row in frame])
        return TakenVersion({**found, **take_tuples(plan, planned.scan, table).cells}, table.num_rows)

    def enriched(self, plan: Plan, frames: Frames, versions: Mapping[str, Rows]) -> Frames:
        found = dict(frames)
        for stream in plan.enriched:
            rows = list(frames.get(stream.base, ()))
            for enrichment in stream.enrichments:
                rows = [row for each in rows for row in _joined(enrichment, each, versions[enrichment.relation])]
            found[stream.name] = rows
        return found

    def release(self) -> None: ...


def _joined(enrichment: Enrichment, row: Row, version: Rows) -> list[Row]:
    """What becomes of one tuple, as Spark joins it."""
    on = scalar(enrichment.on.sql)
    both = [
        _Enriched({**row, **{enrichment.column(name): value for name, value in other.items()}}) for other in version
    ]
    matches: list[Row] = [each for each in both if on(each) is True]
    if enrichment.kind is JoinKind.SEMI:
        return [row] if matches else []
    if enrichment.kind is JoinKind.ANTI:
        return [] if matches else [row]
    return [_Enriched(row)] if enrichment.kind is JoinKind.LEFT and not matches else matches


class _Enriched(dict[str, Any]):
    """A tuple with columns of relations; those of which it has no match are NULL."""

    def __missing__(self, name: str) -> None:
        return None


class Versions:
    """The versions of relations by round; the one of the round that is running is the current one."""

    def __init__(self, by_round: Sequence[Mapping[str, Rows]]) -> None:
        self.by_round, self.round = by_round, 0

    def sources(self) -> dict[str, Callable[[], Rows]]:
        names = {name for versions in self.by_round for name in versions}
        return {name: lambda name=name: self.current(name) for name in names}  # type: ignore[misc]

    def current(self, name: str) -> Rows:
        return self.by_round[min(self.round, len(self.by_round) - 1)].get(name, ())
