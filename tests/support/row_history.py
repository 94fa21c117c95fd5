"""What Spark makes of kept tuples for questions and new queries, in plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from support.native import taken_of_plan
from support.row_answers import row_blocks, tuples_of
from windloom.answers.blocks import Block
from windloom.checkpoint.tuple_files import TICK
from windloom.checkpoint.tuple_folder import TupleFolder
from windloom.model import Stream
from windloom.optimizer.cost.constants import shipped_constants
from windloom.optimizer.intake.choose import choose_scans
from windloom.plan.plan import Plan
from windloom.state.cells import Cells
from windloom.state.tuple_store import ReportedWindows, TupleStores


@dataclass(frozen=True)
class RowHistory:
    folder: TupleFolder
    streams: Mapping[str, Stream]

    def cells(self, plan: Plan, kept: TupleStores, since: Mapping[str, int]) -> dict[int, Cells]:
        found: dict[int, Cells] = {}
        for name, tick in since.items():
            stream = self.streams[name]
            numbers = [partial_set.number for partial_set in plan.sets if partial_set.stream == name]
            sets = tuple(replace(plan.sets[number], number=place) for place, number in enumerate(numbers))
            scans = choose_scans([stream], list(sets), "woven", shipped_constants())
            alone = replace(plan, joins=(), rows=(), stores=(), streams=(stream,), sets=sets, scans=scans)
            rows = [row for row in tuples_of(stream, kept, self.folder) if row[TICK] >= tick]
            found |= {numbers[place]: cells for place, cells in taken_of_plan(alone, {name: rows}).cells.items()}
        return found

    def blocks(self, plan: Plan, asked: ReportedWindows, kept: TupleStores) -> Iterator[Block]:
        return row_blocks(plan, [asked], kept, self.folder)
