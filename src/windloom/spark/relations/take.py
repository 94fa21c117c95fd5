"""Brings a version of a relation to the driver: one job projects what queries need, then the cells are made."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from windloom.errors import WindloomError
from windloom.plan.physical import Plan
from windloom.plan.relations import PlannedRelation
from windloom.rounds.cells import Cells
from windloom.rounds.joins.sides import no_cells
from windloom.rounds.taken import take_together, take_tuples
from windloom.spark.errors import as_windloom_errors
from windloom.spark.intake.collect import collected
from windloom.spark.intake.projection import projected


@dataclass(frozen=True, slots=True)
class TakenVersion:
    """The cells of a version, by number of the set, and how many of its rows some query wants."""

    cells: dict[int, Cells]
    rows: int

    @property
    def nbytes(self) -> int:
        return sum(cells.nbytes for cells in self.cells.values())


def take_version(plan: Plan, planned: PlannedRelation, frame: DataFrame, limit: int | None = None) -> TakenVersion:
    """Return the cells of every set of a relation, even if it has none; raise if they take more than `limit` bytes."""
    relation, scan = planned.relation, planned.scan
    cells_by_set = {number: no_cells(plan.sets[number]) for number in planned.sets}
    if scan is None:
        return TakenVersion(cells_by_set, 0)
    parts, rows, size = [], 0, 0
    with as_windloom_errors(f"relation '{relation.name}'"):
        for table in collected(projected(scan, relation, frame), f"relation '{relation.name}'"):
            parts.append(take_tuples(plan, scan, table))
            rows += table.num_rows
            size += sum(cells.nbytes for cells in parts[-1].cells.values())
            if limit is not None and size > limit:
                raise WindloomError(
                    f"relation '{relation.name}' is larger than the driver holds",
                    f"what queries need of it is more than {size / 2**20:,.0f} MiB, of {limit / 2**20:,.0f} MiB",
                    f"declare it NONRETROACTIVE, and tuples are joined with it on the executors as they come in;"
                    f" or let queries read fewer columns of '{relation.name}'",
                )
    return TakenVersion({**cells_by_set, **(take_together(parts).cells if parts else {})}, rows)
