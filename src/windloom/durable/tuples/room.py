"""Predicts, at the start and in every round, whether there is room for the tuples that streams keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windloom.durable.storage import Storage
from windloom.errors import WindloomError
from windloom.model.time import TICKS_PER_SECOND, format_duration
from windloom.plan.physical import Plan
from windloom.plan.rows import Store, kept_ticks, store_size
from windloom.rounds.rows.kept import Kept, KeptTuples

#: The tuples so far predict the size of a full store once they span this share of the time for which they are kept.
_TELLING = 0.01


@dataclass(frozen=True, slots=True)
class Room:
    """The room that one stream needs: the bytes so far, and the bytes that are expected when its store is full."""

    stream: str
    ticks: int
    held: int
    expected: float


def planned_room(plan: Plan, kept: Kept) -> list[Room]:
    """Return what is expected before a stream starts, for streams whose rates are known."""
    rooms = []
    for store in plan.stores:
        rate, origin = plan.rate_of(plan.stream(store.stream))
        if origin.source != "assumed":
            size = store_size(store, plan.rows, rate, origin)
            bytes_so_far = kept[store.stream].bytes if store.stream in kept else 0
            rooms.append(Room(store.stream, size.ticks, bytes_so_far, size.bytes))
    return rooms


def check_room(kept: Kept, plan: Plan, storage: Storage) -> None:
    """Raise if streams are expected to keep more tuples than there is room for."""
    refuse_without_room([_room(store, kept, plan) for store in plan.stores if store.stream in kept], storage)


def refuse_without_room(rooms: Iterable[Room], storage: Storage) -> None:
    rooms = list(rooms)
    free = storage.free_bytes() if rooms else None
    if free is None:
        return
    more = sum(max(0.0, room.expected - room.held) for room in rooms)
    if more <= free:
        return
    largest = max(rooms, key=lambda room: room.expected)
    raise WindloomError(
        f"there is no room to keep the tuples of stream '{largest.stream}' for {format_duration(largest.ticks)}",
        f"about {_bytes(sum(room.expected for room in rooms))} are expected in all, {_bytes(free)} are free,"
        f" and {_bytes(sum(room.held for room in rooms))} are there already",
        "keep them for a shorter time (keep_tuples, or the windows of row queries), or make room;"
        " then start again with the same checkpoint: nothing is lost",
    )


def _room(store: Store, kept: Kept, plan: Plan) -> Room:
    stored, ticks = kept[store.stream], kept_ticks(store, plan.rows)
    return Room(store.stream, ticks, stored.bytes, _expected(stored, ticks))


def _expected(kept: KeptTuples, ticks: int) -> float:
    """Return the bytes of a full store, if tuples continue to come as they did."""
    if not kept.files:
        return 0.0
    span = max(file.last for file in kept.files) - min(file.first for file in kept.files)
    if span < max(_TELLING * ticks, TICKS_PER_SECOND):
        return float(kept.bytes)
    return kept.bytes * max(1.0, ticks / span)


def _bytes(count: float) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f} bytes"
