"""The identity of a checkpoint: the streams and relations it was made for, and how those of a catalog differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from windloom.model.relation import Relation
from windloom.model.stream import Stream
from windloom.model.time import format_duration


def identity_of(streams: Mapping[str, Stream]) -> dict[str, Any]:
    """Return everything about streams that must not change between two starts; the rate may change."""
    return {
        name: {
            "columns": {column: kind.name for column, kind in stream.columns.items()},
            "time": stream.time,
            "time_unit": stream.time_unit,
            "delay_ticks": stream.delay_ticks,
        }
        for name, stream in streams.items()
    }


def relations_of(relations: Mapping[str, Relation]) -> dict[str, Any]:
    """Return everything about relations that must not change between two starts."""
    return {
        name: {
            "columns": {column: kind.name for column, kind in relation.columns.items()},
            "retroactive": relation.is_retroactive,
        }
        for name, relation in relations.items()
    }


def differences(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each difference between the checkpoint's streams and those of the catalog."""
    for name in wanted:
        if name not in recorded:
            yield f"stream '{name}' is not in the checkpoint"
    for name, old in recorded.items():
        new = wanted.get(name)
        if new is None:
            yield f"stream '{name}' of the checkpoint is not in this catalog"
            continue
        yield from _columns(f"stream '{name}'", old["columns"], new["columns"])
        if old["time"] != new["time"] or old["time_unit"] != new["time_unit"]:
            yield f"stream '{name}': its time is '{_time(new)}' here and '{_time(old)}' in the checkpoint"
        if old["delay_ticks"] != new["delay_ticks"]:
            here, there = (format_duration(stream["delay_ticks"]) for stream in (new, old))
            yield f"stream '{name}': its delay is {here} here and {there} in the checkpoint"


def relation_differences(recorded: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence for each difference between the checkpoint's relations and those of the catalog.

    A missing relation is not a difference; it matters only if a query reads it.
    """
    for name in recorded.keys() & wanted.keys():
        old, new = recorded[name], wanted[name]
        yield from _columns(f"relation '{name}'", old["columns"], new["columns"])
        if old["retroactive"] != new["retroactive"]:
            here, there = ("retroactive" if relation["retroactive"] else "not retroactive" for relation in (new, old))
            yield f"relation '{name}' is {here} here and {there} in the checkpoint"


def _columns(source: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for column in dict.fromkeys([*old, *new]):
        here, there = new.get(column), old.get(column)
        if here != there:
            known = f"{here or 'missing'} here and {there or 'missing'} in the checkpoint"
            yield f"{source}: column '{column}' is {known}"


def _time(stream: Mapping[str, Any]) -> str:
    unit = stream["time_unit"]
    return str(stream["time"]) if unit is None else f"{stream['time']} in {unit}"
