"""The log of one round: the complete input of its step.

Tuples are logged as cells or, if that takes less space, as projected tuples: weaving these again gives the same
cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa

from windloom.checkpoint.frames import (
    frame_bytes,
    read_cells,
    read_file,
    read_summaries,
    table_blob,
    table_of,
    write_cells,
    write_summaries,
)
from windloom.checkpoint.json_codec import from_json, to_json
from windloom.checkpoint.state_codec import read_positions, restored_state, write_positions
from windloom.model.stream import Version
from windloom.plan.plan import Plan
from windloom.plan.scans import WovenScan
from windloom.rounds.lateness import before_round
from windloom.state.frontiers import LateTuples
from windloom.state.state import State
from windloom.state.tuple_store import NewTupleFiles
from windloom.weave.round_input import RoundInput, ScanResult
from windloom.weave.weave import ScanCounts, read_tuples, weave


@dataclass(frozen=True, slots=True)
class RoundLog:
    """The input of the step, in terms of the plan `plan_version`, and the other figures of the round.

    `tuples` are, by number of the scan, tuples whose cells may be missing in `input`: `complete` makes them again.
    `untimed` counts the tuples of each stream that had no usable time and were left out. `only_answers`: the round took
    nothing in.
    """

    round: int
    plan_version: int
    input: RoundInput
    untimed: Mapping[str, int] = field(default_factory=dict)
    tuples: Mapping[int, pa.Table] = field(default_factory=dict)
    only_answers: bool = False

    def complete(self, plan: Plan, state: State) -> RoundInput:
        """Return the complete input of the step; `plan` is the plan of the round, `state` the state it began with."""
        cells = dict(restored_state(State(self.input.taken.cells), plan).cells)
        for number, table in self.tuples.items():
            scan = plan.scans[number]
            assert isinstance(scan, WovenScan), "only woven scans leave tuples"
            if not any(fed.number in cells for fed in scan.feeds):
                closed = before_round(plan, state)[scan.stream].frontier
                cells |= weave(plan, scan, read_tuples(plan, scan, table), closed)
        return self.input.taking(replace(self.input.taken, cells=cells))

    def smaller(self, plan: Plan) -> RoundLog:
        """Return the log with the tuples or the cells of every scan: what the plan says, or what takes less space."""
        cells, tuples = dict(self.input.taken.cells), {}
        for number, table in self.tuples.items():
            scan = plan.scans[number]
            assert isinstance(scan, WovenScan), "only woven scans leave tuples"
            fed_sets = [fed.number for fed in scan.feeds if fed.number in cells]
            is_smaller = table.nbytes < sum(cells[set_number].nbytes for set_number in fed_sets)
            if scan.log == "tuples" or (scan.log == "smaller" and is_smaller):
                tuples[number] = table
                for set_number in fed_sets:
                    del cells[set_number]
        return replace(self, input=self.input.taking(replace(self.input.taken, cells=cells)), tuples=tuples)

    def to_bytes(self) -> bytes:
        round_input, taken = self.input, self.input.taken
        blobs: dict[str, Any] = {}
        sets: list[dict[str, Any]] = []
        if taken.cells:
            sets, blobs["cells"] = write_cells(taken.cells)
        blobs |= {f"tuples {number}": table_blob(table) for number, table in sorted(self.tuples.items())}
        blobs |= {f"behind {number}": table_blob(behind.to_table()) for number, behind in sorted(taken.behind.items())}
        rows: dict[str, Any] | None = None
        if round_input.rows is not None:
            rows, of_rows = write_positions(round_input.rows)
            blobs |= of_rows
        summaries, of_summaries = write_summaries(round_input.summaries)
        blobs |= of_summaries
        body = {
            "round": self.round,
            "plan_version": self.plan_version,
            "sets": sets,
            "tuples": sorted(self.tuples),
            "behind": sorted(taken.behind),
            "rows": rows,
            "frontiers": dict(round_input.frontiers),
            "seen": dict(round_input.seen),
            "first": dict(round_input.first),
            "idle": sorted(round_input.idle),
            "untimed": dict(self.untimed),
            "events": dict(round_input.events),
            "postponed": dict(round_input.postponed),
            "kept": {name: to_json(NewTupleFiles, brought_tuples) for name, brought_tuples in round_input.kept.items()},
            "summaries": summaries,
            "versions": {name: to_json(Version, version) for name, version in sorted(round_input.versions.items())},
            "scanned": {str(number): asdict(scanned) for number, scanned in taken.scanned.items()},
            "only_answers": self.only_answers,
        }
        return frame_bytes("log", body, blobs)

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> RoundLog:
        """Return a log from its bytes; raise, with its name, if it is damaged, cut short or of another version."""
        frame = read_file("log", name, data)
        about, blobs = frame.body, frame.blobs
        tuples = {number: table_of(blobs[f"tuples {number}"]) for number in about["tuples"]}
        cells = read_cells(about["sets"], blobs["cells"]) if about["sets"] else {}
        behind = {number: LateTuples.from_table(table_of(blobs[f"behind {number}"])) for number in about["behind"]}
        rows = None if about["rows"] is None else read_positions(about["rows"], blobs)
        scanned = {int(number): ScanCounts(**counts) for number, counts in about.get("scanned", {}).items()}
        round_input = RoundInput(
            ScanResult(cells, behind, scanned),
            about["frontiers"],
            about["seen"],
            about["first"],
            rows,
            frozenset(about["idle"]),
            about.get("events", {}),
            about.get("postponed", {}),
            about["round"],
            {name: from_json(NewTupleFiles, brought) for name, brought in about["kept"].items()},
            read_summaries(about["summaries"], blobs),
            {name: from_json(Version, version) for name, version in about["versions"].items()},
        )
        only_answers = about.get("only_answers", False)
        return cls(about["round"], about["plan_version"], round_input, about["untimed"], tuples, only_answers)
