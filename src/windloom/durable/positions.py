"""Positions of tuples as part of a frame: their description, and a blob for each table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windloom.durable.arrow_blobs import table_blob, table_of
from windloom.rounds.positions import Counting, Counts, Positions


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
        Counting(stream, tuple(keys)): Counts(
            table_of(blobs[f"counted {number}"]) if f"counted {number}" in blobs else None, after
        )
        for number, (stream, keys, after) in enumerate(about["counts"])
    }
    return Positions({stream: table_of(blobs[f"waiting {stream}"]) for stream in about["waiting"]}, counts)
