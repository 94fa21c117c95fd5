"""Chooses the intake of a stream by predicted cost.

One native `groupBy` is the cheapest way to a few partials of one grouping. For unlike sets it makes more partials than
there are tuples, with generated code for each. Then it is cheaper to project tuples and weave them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from windloom.errors import WindloomError, near_names
from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.intake.cost import native_cost, scanned_rate, woven_cost
from windloom.optimizer.intake.native import native_scan
from windloom.optimizer.intake.signature import is_fed
from windloom.optimizer.intake.woven import woven_scan
from windloom.plan.choices import Choices
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.scans import NativeScan, Scan, WovenScan

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
    given: Choices | None = None,
) -> tuple[Scan, ...]:
    """The scans that feed all sets that can have tuples. `given` are recorded choices, which replace the choice."""
    found: list[Scan] = []
    for stream in streams:
        own = [one for one in sets if one.stream == stream.name and is_fed(one)]
        timed = [one for one in own if one.counted_by is None]
        counted: dict[tuple[Expression, ...], list[PartialSet]] = {}
        for one in own:
            if one.counted_by is not None:
                counted.setdefault(one.counted_by, []).append(one)
        watched = [one for members in counted.values() for one in members]
        if timed or watched:
            recorded = None if given is None else given.option("intake", stream.name, "woven")
            scan = _timed(len(found), stream, timed, watched, way, constants, recorded)
            if given is not None and isinstance(scan, WovenScan):
                scan = replace(scan, log=given.option("log", stream.name, scan.log))
            found.append(scan)
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


def intake_obstacle(plan: Plan, stream: str) -> str | None:
    """Why the tuples of a stream cannot be taken in natively; None if they can."""
    own = [one for one in plan.sets if one.stream == stream and is_fed(one)]
    timed = [one for one in own if one.counted_by is None]
    return _obstacle(timed, [one for one in own if one.counted_by is not None])


def _timed(
    number: int,
    stream: Stream,
    sets: Sequence[PartialSet],
    watched: Sequence[PartialSet],
    way: str,
    constants: Constants,
    recorded: str | None,
) -> Scan:
    """The scan of the way that was recorded, or else asked for, or else is predicted to be cheaper."""
    obstacle, chosen = _obstacle(sets, watched), recorded or way
    if chosen == "native" and obstacle is not None:
        raise WindloomError(
            f"stream '{stream.name}' cannot be taken in natively",
            obstacle,
            "leave intake out, or use intake='woven'",
        )
    if obstacle is not None:
        return woven_scan(number, sets, watched, "asked for" if way == "woven" else obstacle)
    woven, native = woven_scan(number, sets, watched), native_scan(number, sets)
    if way != "auto":
        return replace(native if chosen == "native" else woven, why="asked for")
    rate = scanned_rate(sets)
    costs = {
        "woven": woven_cost(constants, woven, sets, rate).total / rate,
        "native": native_cost(constants, native, sets, rate).total / rate,
    }
    if chosen == "auto":
        chosen = "woven" if costs["woven"] < costs["native"] else "native"
    if chosen == "woven":
        return replace(woven, why=_told(costs["woven"], "native", costs["native"]))
    return replace(native, why=_told(costs["native"], "woven", costs["woven"]))


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
