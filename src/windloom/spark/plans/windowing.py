"""The node of a resolved plan that makes the windows: an expansion or a projection, whose first column they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from py4j.java_gateway import get_field  # type: ignore[import-untyped]

from windloom.model.time import TICKS_PER_SECOND
from windloom.spark.plans.jvm import Java, JavaNode, elements, kind_of, place_of, shown, texts
from windloom.spark.plans.written import RefusedPlanError, duration_literal

#: What Spark writes into the metadata of the columns that hold its windows.
_MARKERS = {"spark.timeWindow": "window", "spark.sessionWindow": "session_window"}
#: How the struct of window() ends: its end is `((t − CASE … ELSE (t − offset) % slide END) − i · slide) + range`.
_END = re.compile(
    r".* ELSE \(\(precisetimestampconversion\((?P<time>.*), Timestamp(?:NTZ)?Type, LongType\) - (?P<offset>-?\d+)\)"
    r" % (?P<slide>\d+)\) END\) - -?\d+\) \+ (?P<range>\d+)\), LongType, Timestamp(?:NTZ)?Type\)\)\)(?: AS .*)?",
    re.DOTALL,
)
_MICROSECONDS_PER_DAY = 86_400 * TICKS_PER_SECOND


@dataclass(frozen=True)
class Windowing:
    """What makes windows; `text` is what Spark shows of their struct, and `column` the name and id of their column."""

    function: str
    node: JavaNode
    text: str

    @property
    def column(self) -> tuple[str, int]:
        return self.node.columns[0]

    @cached_property
    def _ends(self) -> re.Match[str]:
        """The last lengths that Spark shows, which no time that a user has written can stand behind."""
        found = _END.fullmatch(self.text)
        if found is None:
            raise RefusedPlanError(
                "the window of the DataFrame cannot be read",
                f"Spark shows it as {self.text[:60]}…",
                "let Spark show plans in full: spark.conf.set('spark.sql.debug.maxToStringFields', 25)",
            )
        return found

    @property
    def time_text(self) -> str:
        """What Spark shows of the time."""
        return "" if self.function == "session_window" else self._ends["time"]

    @cached_property
    def _struct(self) -> Java:
        if self.node.kind == "Expand":
            return self.node.plan.projections().apply(0).apply(0)
        return self.node.plan.projectList().apply(0).child()

    @property
    def time(self) -> Java:
        """The expression of the time."""
        start = _microseconds(self._struct.children().apply(1))
        return _microseconds(start) if self.function == "session_window" else start.left().left().child()

    @property
    def lengths(self) -> tuple[str, ...]:
        """The range, the slide and the offset as SQL literals, as far as they must be written, or the gap."""
        if self.function == "session_window":
            return (self._gap(),)
        length, slide, offset = (int(self._ends[each]) for each in ("range", "slide", "offset"))
        lengths = [length, *([slide] if slide != length or offset else []), *([offset] if offset else [])]
        return tuple(map(duration_literal, lengths))

    def _gap(self) -> str:
        """Return the gap of a session, whose end is the time plus an interval."""
        addition = _microseconds(self._struct.children().apply(3))
        while kind_of(addition) == "Cast":
            addition = addition.child()
        gap = addition.children().apply(1)
        if not gap.foldable():
            raise RefusedPlanError(
                "sessions whose gap varies are not supported",
                f"the gap is {shown(gap)}",
                "give session_window one gap: session_window('ts', '5 minutes')",
                place_of(iter([gap])),
            )
        return duration_literal(ticks_of(gap.eval(None)))


def windowing_of(node: JavaNode) -> Windowing | None:
    """Return what makes windows in a node; None if it makes none."""
    match node.kind:
        case "Expand":
            made = texts(node.plan.projections().apply(0))
        case "Project":
            made = node.made
        case _:
            return None
    if not made or not made[0].startswith("named_struct(start, "):
        return None
    metadata = str(node.plan.output().apply(0).metadata().json())
    function = next((name for marker, name in _MARKERS.items() if f'"{marker}"' in metadata), None)
    return None if function is None else Windowing(function, node, made[0])


def ticks_of(interval: Java, days_of_months: int | None = None) -> int:
    """Return the length of an interval of Spark; a month has as many days as are given, and otherwise no length."""
    days, months = int(get_field(interval, "days")), int(get_field(interval, "months"))
    if months and days_of_months is None:
        raise RefusedPlanError(
            "months have no fixed length", f"the plan has an interval of {interval.toString()}", "give it in days"
        )
    days += months * (days_of_months or 0)
    return days * _MICROSECONDS_PER_DAY + int(get_field(interval, "microseconds"))


def _microseconds(edge: Java) -> Java:
    """Return the number of microseconds that an edge of a window is made from."""
    while kind_of(edge) in ("KnownNullable", "PreciseTimestampConversion"):
        edge = edge.child()
    return edge


def has_open_windows(node: JavaNode) -> bool:
    """Return whether windows that nothing has aggregated yet are made in a node or below it."""
    if windowing_of(node) is not None:
        return True
    return node.kind != "Aggregate" and any(has_open_windows(JavaNode(each)) for each in elements(node.plan.children()))
