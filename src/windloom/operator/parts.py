"""What weaving sends to a bucket: the cells of the bucket's groups, and what the task has seen of its stream.

Every task sends a part to every bucket, with or without cells, so that all buckets know how far the streams have come
in the round that brings the tuples, and close their windows in it. The tasks of a stream know nothing of its frontier,
so they cannot tell which tuples are late: to the first bucket, they send all tuples counted by slice and signature.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.checkpoint.frames import frame_bytes, read_frame, table_blob, table_of
from windloom.checkpoint.json_codec import from_json, to_json
from windloom.checkpoint.state_codec import decode, encode, restored_state
from windloom.kernels.hashing import spark_hash
from windloom.model.time import TICK_MAX
from windloom.operator.segments import COMPRESSION
from windloom.plan.division import division_of
from windloom.plan.plan import PartialSet, Plan
from windloom.plan.scans import WovenScan
from windloom.state.cells import Cells, keep_groups, merge_all
from windloom.state.frontiers import ON_TIME, LateBounds, LateTuples, join_behind
from windloom.state.positions import PositionCounts, counted_tuples
from windloom.state.state import State
from windloom.weave.round_input import ScanResult, take_together, take_tuples
from windloom.weave.weave import ScanCounts, Ticks, timed_tuples

#: Every tuple is counted by slice and signature, as if all were late.
_ALL_COUNTED = LateBounds(closed=TICK_MAX)
#: Buckets are spread evenly over so many partitions, and over any number that divides it, as all usual ones do.
_SPREAD = 4800


@dataclass(frozen=True, slots=True)
class Part:
    """What one task sends to one bucket, or several parts merged.

    `ticks` are those that the tuples of each stream span, with the number of tuples. `passed` are, by scan, all tuples
    by slice and signature; only the first bucket has them, and only in a stream. It also has the counts of scans.
    `counted` are the tuples with a position, by scan. `buckets` is how many there are.
    """

    buckets: int = 1
    ticks: Mapping[str, Ticks] = field(default_factory=dict)
    cells: Mapping[int, Cells] = field(default_factory=dict)
    passed: Mapping[int, LateTuples] = field(default_factory=dict)
    scanned: Mapping[int, ScanCounts] = field(default_factory=dict)
    counted: Mapping[int, PositionCounts] = field(default_factory=dict)


def weave_parts(
    plan: Plan, scan: WovenScan, tables: Iterable[pa.Table], buckets: int, place: int, *, is_stream: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each bucket with the encoded part that a task sends to it; nothing without tuples.

    `tables` are projected tuples. `place` is where the task's parts come among those of
    other tasks when they are merged, so that sums of floats do not depend on which task is done first.
    """
    before = _ALL_COUNTED if is_stream else ON_TIME
    results, positions = list[ScanResult](), PositionCounts()
    for table in tables:
        results.append(take_tuples(plan, scan, table, before, threads=1))
        if scan.counted_by is not None and scan.feeds:
            positions = positions.plus(counted_tuples(plan, scan, timed_tuples(table)[0]))
    if not results:
        return
    taken = take_together(results)
    seen = taken.ticks.get(scan.number, Ticks())
    counted = taken.scanned[scan.number].tuples if scan.number in taken.scanned else 0
    # If tuples are also counted by position, the scan of its slices of time tells how far a stream has come.
    tells = scan.number == min(each.number for each in plan.scans if each.stream == scan.stream)
    ticks = {scan.stream: Ticks(seen.first, seen.last, seen.untimed, counted)} if tells else {}
    cells_by_bucket = divide(taken.cells, plan, buckets)
    for bucket in range(buckets):
        cells = cells_by_bucket.get(bucket, {})
        passed, scanned = (taken.behind, taken.scanned) if bucket == 0 else ({}, {})
        by_scan = {} if positions.table is None else {scan.number: positions}
        yield bucket, encode_part(Part(buckets, ticks, cells, passed, scanned, by_scan), place)


@lru_cache(maxsize=8)
def bucket_keys(buckets: int) -> tuple[int, ...]:
    """Return the keys by which Spark groups the parts of buckets; the key of a bucket does not depend on their number.

    Spark chooses partitions by its hash of keys, which would put buckets 0 and 1 into the first of two. The hash of
    these keys leaves the number of the bucket as its remainder, so successive buckets go to successive partitions.
    """
    waiting = {bucket % _SPREAD: list(range(bucket, buckets, _SPREAD)) for bucket in range(min(buckets, _SPREAD))}
    keys, first = [0] * buckets, 0
    while any(waiting.values()):
        candidates = pa.array(np.arange(first, first + _SPREAD, dtype=np.int32))
        for key, bucket in enumerate(np.mod(spark_hash([candidates], _SPREAD), _SPREAD).tolist(), first):
            if waiting.get(bucket):
                keys[waiting[bucket].pop(0)] = key
        first += _SPREAD
    return tuple(keys)


def divide(cells: Mapping[int, Cells], plan: Plan, buckets: int) -> dict[int, dict[int, Cells]]:
    """Return the cells of each bucket that has any, by number of the set."""
    division, divided = division_of(plan), dict[int, dict[int, Cells]]()
    for number, held in cells.items():
        bucket_of = _buckets_of(plan.sets[number], held, division.of(number), buckets)
        for bucket in np.unique(bucket_of):
            divided.setdefault(int(bucket), {})[number] = keep_groups(held, bucket_of == bucket)
    return divided


def _buckets_of(
    partial_set: PartialSet, cells: Cells, columns: tuple[int, ...] | None, buckets: int
) -> NDArray[np.int64]:
    """Return the bucket of every group, which depends only on its values in these columns; None means all columns.

    A set without grouping columns is in one bucket, the same in every plan. Sets that joins keep together without a
    common key are all in the first.
    """
    keys = cells.keys if columns is None else [cells.keys[column] for column in columns]
    if keys:
        return np.mod(spark_hash(keys, cells.groups), buckets).astype(np.int64)
    own = 0 if columns is not None else zlib.crc32(repr(partial_set.identity).encode()) % buckets
    return np.full(cells.groups, own, np.int64)


def encode_part(part: Part, place: int) -> bytes:
    passed = {f"passed {number}": table_blob(late.to_table()) for number, late in part.passed.items()}
    cells = {"cells": encode(State(part.cells), COMPRESSION)} if part.cells else {}
    ticks = {name: to_json(Ticks, seen) for name, seen in part.ticks.items()}
    scanned = {str(number): to_json(ScanCounts, counts) for number, counts in part.scanned.items()}
    about = {"place": place, "buckets": part.buckets, "ticks": ticks, "scanned": scanned}
    counted = {
        f"counted {number}": table_blob(counts.table)
        for number, counts in part.counted.items()
        if counts.table is not None
    }
    return frame_bytes("part", about, {**cells, **passed, **counted})


def decode_part(data: bytes, plan: Plan) -> tuple[int, Part]:
    """Return a part, after its place among others."""
    frame = read_frame("part", "a part of a round", data, "run the round again")
    cells: Mapping[int, Cells] = decode(bytes(frame.blobs["cells"])).cells if "cells" in frame.blobs else {}
    passed = {
        int(name.removeprefix("passed ")): LateTuples.from_table(table_of(blob))
        for name, blob in frame.blobs.items()
        if name.startswith("passed ")
    }
    counted = {
        int(name.removeprefix("counted ")): PositionCounts(table_of(blob))
        for name, blob in frame.blobs.items()
        if name.startswith("counted ")
    }
    ticks = {name: from_json(Ticks, seen) for name, seen in frame.body["ticks"].items()}
    scanned = {int(number): from_json(ScanCounts, counts) for number, counts in frame.body["scanned"].items()}
    cells = restored_state(State(cells), plan).cells
    return int(frame.body["place"]), Part(frame.body["buckets"], ticks, cells, passed, scanned, counted)


def merged(parts: Sequence[Part]) -> Part:
    """Return what all parts bring together; the order of parts decides in which order floats are added up."""
    ticks: dict[str, Ticks] = {}
    cells: dict[int, list[Cells]] = {}
    passed: dict[int, list[LateTuples]] = {}
    scanned: dict[int, ScanCounts] = {}
    counted: dict[int, PositionCounts] = {}
    for part in parts:
        for name, seen in part.ticks.items():
            ticks[name] = ticks.get(name, Ticks()) + seen
        for number, held in part.cells.items():
            cells.setdefault(number, []).append(held)
        for number, late in part.passed.items():
            passed.setdefault(number, []).append(late)
        for number, counts in part.scanned.items():
            scanned[number] = scanned.get(number, ScanCounts()) + counts
        for number, positions in part.counted.items():
            if positions.table is not None:
                counted[number] = counted.get(number, PositionCounts()).plus(positions.table)
    return Part(
        max((part.buckets for part in parts), default=1),
        ticks,
        {number: merge_all(each) for number, each in cells.items()},
        {number: join_behind(each) for number, each in passed.items()},
        scanned,
        counted,
    )


def merged_parts(blobs: Iterable[bytes], plan: Plan) -> Part:
    """Return what all tasks have sent to one bucket, whatever the order in which it came."""
    parts = sorted((decode_part(blob, plan) for blob in blobs), key=lambda placed: placed[0])
    return merged([part for _, part in parts])
