"""Chooses the intake of a stream by predicted cost.

One native `groupBy` is the cheapest way to a few partials of one grouping. For unlike sets it makes more partials than
there are tuples, with generated code for each. Then it is cheaper to project tuples and weave them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from windloom.errors import WindloomError, near_names
from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.intake.cost import native_cost, scanned_rate, woven_cost
from windloom.optimizer.intake.native import native_scan
from windloom.optimizer.intake.signature import is_fed
from windloom.optimizer.intake.woven import keeping_of, woven_scan
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.rows import PlannedRows, Store
from windloom.plan.scans import NativeScan, Scan

#: How tuples become cells: chosen by predicted cost, by compiled kernels, or by Spark's own aggregation.
INTAKES = ("auto", "woven", "native")


def check_intake(name: str) -> None:
    if name not in INTAKES:
        raise WindloomError(
            f"unknown intake '{name}'",
            "it says how the tuples of a stream become partials",
            near_names(name, list(INTAKES)),
        )


def choose_scans(
    streams: Iterable[Stream],
    sets: Sequence[PartialSet],
    way: str,
    constants: Constants,
    given: Mapping[str, str] | None = None,
    rows: Sequence[PlannedRows] = (),
    stores: Sequence[Store] = (),
) -> tuple[Scan, ...]:
    """The scans that feed all sets that can have tuples, and all stores. `given` are recorded choices, by stream."""
    found: list[Scan] = []
    for stream in streams:
        own = [one for one in sets if one.stream == stream.name and is_fed(one)]
        timed = [one for one in own if one.counted_by is None]
        counted: dict[tuple[Expression, ...], list[PartialSet]] = {}
        for one in own:
            if one.counted_by is not None:
                counted.setdefault(one.counted_by, []).append(one)
        watched = [one for members in counted.values() for one in members]
        store = next((one for one in stores if one.stream == stream.name), None)
        if store is not None:
            keeping = keeping_of(store, rows)
            why = "its tuples are kept" if way != "woven" else "asked for"
            found.append(woven_scan(len(found), timed, watched, why, keeping))
        elif timed or watched:
            chosen = way if given is None else given.get(stream.name, "woven")
            found.append(_timed(len(found), stream, timed, watched, chosen, constants))
        for members in counted.values():
            found.append(
                woven_scan(len(found), members, why=f"{members[0].window.plural} need the positions of tuples")
            )
    return tuple(found)


def intakes_of(plan: Plan) -> dict[str, str]:
    """The choice for every stream, for the record."""
    return {
        scan.stream: "native" if isinstance(scan, NativeScan) else "woven"
        for scan in reversed(plan.scans)
        if isinstance(scan, NativeScan) or scan.counted_by is None
    }


def _timed(
    number: int,
    stream: Stream,
    sets: Sequence[PartialSet],
    watched: Sequence[PartialSet],
    way: str,
    constants: Constants,
) -> Scan:
    obstacle = _obstacle(sets, watched)
    if way == "native" and obstacle is not None:
        raise WindloomError(
            f"stream '{stream.name}' cannot be taken in natively",
            obstacle,
            "leave intake out, or use intake='woven'",
        )
    if way == "native":
        return native_scan(number, sets, "asked for")
    woven = woven_scan(number, sets, watched, "asked for" if way == "woven" else obstacle or "")
    if way == "woven" or obstacle is not None:
        return woven
    rate = scanned_rate(sets)
    native = native_scan(number, sets)
    costs = {
        "woven": woven_cost(constants, woven, sets, rate).total / rate,
        "native": native_cost(constants, native, sets, rate).total / rate,
    }
    if costs["woven"] < costs["native"]:
        return woven_scan(number, sets, watched, _told(costs["woven"], "native", costs["native"]))
    return native_scan(number, sets, _told(costs["native"], "woven", costs["woven"]))


def _told(cost: float, other: str, other_cost: float) -> str:
    return f"predicted {cost * 1e6:.3g} µs per tuple; {other}, it would be {other_cost * 1e6:.3g} µs"


def _obstacle(sets: Sequence[PartialSet], watched: Sequence[PartialSet]) -> str | None:
    """Why Spark's own aggregation cannot make the partials of these sets."""
    if watched:
        return f"query '{next(watched[0].queries).name}' {watched[0].window.native_obstacle}"
    for one in sets:
        if one.window.native_obstacle is not None:
            return f"query '{next(one.queries).name}' {one.window.native_obstacle}"
        for part in one.components:
            if not part.card.is_native:
                return f"'{part.component}' has no partials that Spark can aggregate"
    return None
