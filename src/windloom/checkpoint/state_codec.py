"""State as bytes and back: cells, positions and progress, in a frame; and the rows that queries have reported.

Of partials, only cells are kept. What a technique derives from them (trees, deques, totals) is computed again at every
step, so a late update to an older slice, or a plan that changes technique, finds nothing stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from windloom.aggregates.registry import PlannedComponent
from windloom.aggregates.user_defined import restored
from windloom.answers.emission.emission import ReportedRows
from windloom.checkpoint.frames import (
    frame_bytes,
    read_cells,
    read_file,
    read_frame,
    read_summaries,
    table_blob,
    table_of,
    write_cells,
    write_summaries,
)
from windloom.checkpoint.json_codec import from_json, to_json
from windloom.model.stream import Version
from windloom.plan.plan import Plan
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.state.cells import Cells
from windloom.state.held import HeldSets
from windloom.state.positions import Counting, PositionCounts, Positions
from windloom.state.state import CellCoverage, CellsAfterClose, PastSlicing, PendingWindows, State
from windloom.state.tuple_store import TupleStore


def write_positions(positions: Positions) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the description, for the body of a frame, and blobs by name."""
    blobs = {f"waiting {stream}": table_blob(table) for stream, table in positions.waiting.items()}
    counts = []
    for number, (counting, count) in enumerate(positions.counts.items()):
        counts.append([counting.stream, list(counting.keys), count.after])
        if count.table is not None:
            blobs[f"counted {number}"] = table_blob(count.table)
    return {"waiting": list(positions.waiting), "counts": counts}, blobs


def read_positions(about: Mapping[str, Any], blobs: Mapping[str, memoryview]) -> Positions:
    counts = {
        Counting(stream, tuple(keys)): PositionCounts(
            table_of(blobs[f"counted {number}"]) if f"counted {number}" in blobs else None, after
        )
        for number, (stream, keys, after) in enumerate(about["counts"])
    }
    return Positions({stream: table_of(blobs[f"waiting {stream}"]) for stream in about["waiting"]}, counts)


def encode(state: State, compression: str | None = None) -> bytes:
    """Return the state as bytes that `decode` reads, here or elsewhere."""
    return frame_bytes("state", *write_state(state, compression))


def decode(data: bytes) -> State:
    """Return the state that was encoded; raise if the bytes are damaged, cut short or of another version."""
    hint = "what works: whole bytes made by `encode`, or a rebuild from the log of partials"
    frame = read_frame("state", "the state", data, hint)
    return read_state(frame.body, frame.blobs)


def restored_state(state: State, plan: Plan) -> State:
    """Return a decoded state with the plan's definitions of aggregates; a file holds only their columns."""
    held = state.cells if isinstance(state.cells, HeldSets) else None
    cells, owed = dict(state.cells if held is None else held.tables), dict(state.owed)
    segments = {} if held is None else dict(held.segments)
    for partial_set in plan.sets:
        set_cells, owing = cells.get(partial_set.number), owed.get(partial_set.number)
        restore = partial(restored_cells, components=partial_set.components)
        if set_cells is not None:
            cells[partial_set.number] = restore(set_cells)
        if partial_set.number in segments and any(
            planned.component.own is not None for planned in partial_set.components
        ):
            segments[partial_set.number] = segments[partial_set.number].changed(restore)
        if owing is not None:
            rounds = owing.rounds and tuple(replace(later, cells=restore(later.cells)) for later in owing.rounds)
            owed[partial_set.number] = PendingWindows(None if owing.cells is None else restore(owing.cells), rounds)
    return replace(state, cells=cells if held is None else HeldSets(cells, segments), owed=owed)


def restored_folds(data: bytes, plan: Plan) -> dict[int, Cells]:
    """Return the folds of joins, by place in the plan, that were encoded as the cells of a state."""
    folds = decode(data).cells.items()
    return {number: restored_cells(cells, plan.joins[number].components) for number, cells in folds}


def restored_cells(cells: Cells, components: Sequence[PlannedComponent]) -> Cells:
    """Return decoded cells of one set with the plan's definitions of its aggregates."""
    if all(planned.component.own is None for planned in components):
        return cells
    pairs = zip(components, cells.lifted, strict=True)
    lifted = (part if planned.component.own is None else restored(planned, part) for planned, part in pairs)
    return replace(cells, lifted=tuple(lifted))


def write_state(state: State, compression: str | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the body of a frame, and blobs by name.

    Names are sorted, so equal states are equal bytes, whatever plans their queries have gone through.
    """
    sets, cells = write_cells(state.cells, compression)
    positions, blobs = write_positions(state.positions)
    summaries, of_rows = write_summaries(state.summaries)
    body = {
        "sets": sets,
        "positions": positions,
        "frontiers": dict(sorted(state.frontiers.items())),
        "ahead": [[list(inputs), tick] for inputs, tick in sorted(state.ahead.items())],
        "seen": dict(sorted(state.seen.items())),
        "first": dict(sorted(state.first.items())),
        "since": dict(sorted(state.since.items())),
        "fresh": sorted(state.fresh),
        "reported": dict(sorted(state.reported.items())),
        "kept": {name: to_json(TupleStore, kept_tuples) for name, kept_tuples in sorted(state.kept.items())},
        "summaries": summaries,
        "versions": {name: to_json(Version, version) for name, version in sorted(state.versions.items())},
        "history": {
            str(number): {
                "kept_from": history.kept_from,
                "known_from": {str(index): tick for index, tick in history.known_from.items()},
                "cuts": [[cut.until, [[of.period, of.residue] for of in cut.edges.classes]] for cut in history.cuts],
            }
            for number, history in sorted(state.history.items())
        },
    }
    if state.answered:
        body["answered"] = dict(sorted(state.answered.items()))
    if state.owed:
        every = [cells for _, owed in sorted(state.owed.items()) for cells in owed.every]
        described, blobs["owed"] = write_cells(dict(enumerate(every)))
        # The cells are in the order of `owed.every`.
        body["owed"] = {
            "cells": described,
            "sets": [
                {
                    "set": number,
                    "has_cells": owed.cells is not None,
                    "rounds": None
                    if owed.rounds is None
                    else [dict(sorted(later.closed.items())) for later in owed.rounds],
                }
                for number, owed in sorted(state.owed.items())
            ],
        }
    return body, {"cells": cells, **blobs, **of_rows}


def read_state(about: Mapping[str, Any], blobs: Mapping[str, memoryview]) -> State:
    return State(
        read_cells(about["sets"], blobs["cells"]),
        about["frontiers"],
        about["seen"],
        about["since"],
        frozenset(about["fresh"]),
        {int(number): _read_coverage(history) for number, history in about["history"].items()},
        about["first"],
        read_positions(about["positions"], blobs),
        {tuple(inputs): tick for inputs, tick in about["ahead"]},
        about.get("answered", {}),
        _owed(about["owed"], blobs["owed"]) if "owed" in about else {},
        about["reported"],
        {name: from_json(TupleStore, kept) for name, kept in about["kept"].items()},
        read_summaries(about["summaries"], blobs),
        {name: from_json(Version, version) for name, version in about["versions"].items()},
    )


def _owed(about: Mapping[str, Any], blob: memoryview) -> dict[int, PendingWindows]:
    cells_in_order = iter(read_cells(about["cells"], blob).values())
    owed_by_set = {}
    for pending in about["sets"]:
        cells, rounds = next(cells_in_order) if pending["has_cells"] else None, pending["rounds"]
        if rounds is not None:
            rounds = tuple(CellsAfterClose(next(cells_in_order), closed) for closed in rounds)
        owed_by_set[int(pending["set"])] = PendingWindows(cells, rounds)
    return owed_by_set


def _read_coverage(about: dict[str, Any]) -> CellCoverage:
    cuts = tuple(
        PastSlicing(EdgeSet(tuple(EdgeClass(period, residue) for period, residue in classes)), until)
        for until, classes in about["cuts"]
    )
    known = {int(index): tick for index, tick in about["known_from"].items()}
    return CellCoverage(about["kept_from"], known, cuts)


def write_emitted(emitted: ReportedRows) -> bytes:
    tables_by_kind = [("standing", emitted.standing), ("known", emitted.known)]
    tables = [(kind, key, table) for kind, by_key in tables_by_kind for key, table in sorted(by_key.items())]
    body = {"tables": [[kind, key] for kind, key, _ in tables]}
    return frame_bytes("emitted", body, {str(index): table_blob(table) for index, (_, _, table) in enumerate(tables)})


def read_emitted(name: str, data: bytes) -> ReportedRows:
    frame = read_file("emitted", name, data)
    tables_by_kind: dict[str, dict[str, object]] = {"standing": {}, "known": {}}
    for index, (kind, key) in enumerate(frame.body["tables"]):
        tables_by_kind[kind][key] = table_of(frame.blobs[str(index)])
    return ReportedRows(**tables_by_kind)
