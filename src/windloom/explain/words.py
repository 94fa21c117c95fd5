"""Words for the parts of a plan: lines that fit a terminal, names, answers, slices, statistics, and durations."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from math import log10
from typing import Any

import numpy as np

from windloom.model.formatting import amount, count, number, share, short_duration
from windloom.model.query import Query
from windloom.model.time import TICKS_PER_SECOND, format_duration
from windloom.plan.plan import Member, PartialSet, Plan, PlannedJoin, Tree
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.slicing.slice_id import GreatestSlice, LookupSlice, PaneSlice, RegularSlice, SliceId
from windloom.statistics.set_statistics import Origin

WIDTH = 110
NAME_WIDTH = 28
SHOW_ALL = "(loom.explain(queries=True) shows all)"
_LABEL_WIDTH = 12
_COMPONENT_WIDTH = 40
#: Edge classes are listed one by one up to this many.
_LISTED_CLASSES = 4
#: A regularity above the first, and a spread below the second, are worth showing.
_EVENLY, _SKEWED = 0.5, 0.8
#: A figure that changes by less than this share per round counts as steady.
_STEADY = 0.005
_TICKS_PER_YEAR = 31_557_600 * TICKS_PER_SECOND  # of 365.25 days
#: Beyond this many years, a pattern of slices repeats only in theory.
_ASTRONOMIC_YEARS = 10_000
_UNITS = (
    ("year", _TICKS_PER_YEAR),
    ("day", 86_400 * TICKS_PER_SECOND),
    ("hour", 3_600 * TICKS_PER_SECOND),
    ("minute", 60 * TICKS_PER_SECOND),
    ("second", TICKS_PER_SECOND),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


def labelled(label: str, text: str, indent: int = 2) -> list[str]:
    """Return a label and its text, wrapped to the right of the label."""
    head = " " * indent + f"{label:{_LABEL_WIDTH}}  "
    return wrapped(text, head, " " * len(head)) or [head.rstrip()]


def wrapped(text: str, head: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)


def one_line(text: str) -> str:
    """Return any text on one line and safe to print: names and SQL may hold line breaks and control characters.

    >>> one_line("SELECT a\\n  FROM b\\x1b[31m")
    'SELECT a FROM b�[31m'
    """
    return "".join(letter if letter.isprintable() else "�" for letter in " ".join(text.split()))


def shorten(text: str, width: int) -> str:
    """Return the text, cut with an ellipsis if it is longer.

    >>> shorten("a rather long name", 8)
    'a rathe…'
    """
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def listing(parts: Iterable[str], at_most: int = 6) -> str:
    """Return the first parts, and the number of the others.

    >>> listing(["a", "b", "c"], at_most=2)
    'a, b and 1 more'
    """
    every = list(parts)
    shown = ", ".join(every[:at_most])
    return shown if len(every) <= at_most else f"{shown} and {len(every) - at_most} more"


def tree_name(plan: Plan, partial_set: PartialSet, tree: Tree) -> str:
    """Return the name of a tree: its number within its set, after the number of the set if there are several."""
    return f"tree {tree.number}" if len(plan.sets) == 1 else f"tree {partial_set.number}.{tree.number}"


def strategy_name(plan: Plan) -> str:
    """Return the strategy; for `auto`, also the strategies that it chose, which may differ from set to set."""
    chosen = sorted({partial_set.strategy for partial_set in plan.sets} - {plan.strategy})
    return f"{plan.strategy} ({', '.join(chosen)})" if chosen else plan.strategy


def grouping(partial_set: PartialSet) -> str:
    return ", ".join(one_line(expression.sql) for expression in partial_set.group_by) or "none"


def counting(partial_set: PartialSet) -> str | None:
    """Return how the tuples of a set of windows of rows are counted, or None if slices are of time."""
    if partial_set.counted_by is None:
        return None
    keys = ", ".join(one_line(expression.sql) for expression in partial_set.counted_by)
    return f"tuples of each {keys} in order of time" if keys else "all tuples in order of time"


def techniques(partial_set: PartialSet, tree: Tree, queries: Iterable[Member]) -> str:
    """Return the technique that answers each component that these queries of the tree ask for."""
    if not partial_set.window.is_sliced:
        return "none: a window is one cell"
    wanted = {component for planned in queries for component in planned.query.components}
    by_technique: dict[str, list[str]] = {}
    for planned_component, technique in zip(partial_set.components, tree.techniques, strict=True):
        if planned_component.component in wanted:
            by_technique.setdefault(technique, []).append(component_name(str(planned_component.component)))
    return "; ".join(f"{', '.join(parts)} by {technique}" for technique, parts in by_technique.items())


def component_name(text: str) -> str:
    return shorten(one_line(text), _COMPONENT_WIDTH)


def answer_text(planned: Member | PlannedJoin) -> str:
    """Return the columns of the answer, and the condition for rows to be reported."""
    if planned.query.is_side:
        kept = ", ".join(component_name(str(part)) for part in planned.query.keeps)
        return f"{kept} by {', '.join(one_line(each.name) for each in planned.query.group_by)}, for folds of joins"
    text, having = output_text(planned.query), having_sql(planned.query)
    return text if having is None else f"{text} HAVING {one_line(having)}"


def output_text(query: Query) -> str:
    """Return the answer's columns besides those of the window, as users write them: `symbol, avg(price) AS p`."""
    columns = [(grouping.expression.sql, grouping.name) for grouping in query.group_by]
    for output in query.outputs:
        if output.aggregate is not None:
            columns.append((str(query.aggregates[output.aggregate]), output.name))
        elif output.expression is not None:
            columns.append((spelled_out(query, output.expression.sql), output.name))
    return one_line(", ".join(sql if sql == name else f"{sql} AS {name}" for sql, name in columns))


def having_sql(query: Query) -> str | None:
    """Return the condition for rows to be reported, as the user would write it."""
    return None if query.having is None else spelled_out(query, query.having.sql)


def spelled_out(query: Query, sql: str) -> str:
    """Return SQL over a query's aggregates and groupings, with these written in place of `__a0`, `__g0`, …"""
    parts = {f"__a{index}": str(aggregate) for index, aggregate in enumerate(query.aggregates)}
    parts |= {f"__g{index}": grouping.expression.sql for index, grouping in enumerate(query.group_by)}
    return re.sub(r"\b__[ag]\d+\b", lambda match: parts[match[0]], sql)


@dataclass(frozen=True, slots=True)
class Measure:
    """How lengths and rates of a set's slices are shown; `pace` is that of its statistics.

    >>> Measure(is_of_positions=True).whole(1000), Measure().whole(1_000_000), Measure(is_of_positions=True).short(1)
    ('1,000 rows', '1 second', '1 row')
    """

    pace: float = 1.0
    is_of_positions: bool = False

    def whole(self, ticks: int) -> str:
        return count(ticks, "row") if self.is_of_positions else format_duration(ticks)

    def short(self, ticks: int) -> str:
        return count(ticks, "row") if self.is_of_positions else short_duration(ticks)

    def length(self, ticks: float) -> str:
        return amount(ticks, "row") if self.is_of_positions else length(ticks)

    def rate(self, edges: EdgeSet) -> float:
        """Return edges per second of event time."""
        return edges.edges_per_second * self.pace


TIME = Measure()


def measure_of(partial_set: PartialSet) -> Measure:
    return Measure(partial_set.statistics.pace, partial_set.window.is_of_positions)


def slice_id_text(slice_id: SliceId, measure: Measure = TIME) -> str:
    """Return how a tuple finds its slice, with the numbers of the chosen slice id.

    >>> slice_id_text(RegularSlice(EdgeClass(1_000_000)))
    'regular: every 1 second'
    """
    match slice_id:
        case RegularSlice(edges=edges) | PaneSlice(edges=edges):
            return f"{slice_id.way}: {every(edges, measure)}"
        case LookupSlice():
            where = f"{len(slice_id.table):,} entries over {measure.whole(slice_id.composite_ticks)}"
            return f"{slice_id.way}: {where}, in steps of {measure.whole(slice_id.pane_ticks)}"
        case GreatestSlice(classes=classes):
            text = f"{slice_id.way} of {len(classes)} edge classes"
            if len(classes) <= _LISTED_CLASSES:
                text += ": " + "; ".join(every(edge_class, measure) for edge_class in classes)
            return text


def every(edges: EdgeClass, measure: Measure = TIME) -> str:
    """Return the time between the edges of a class, and the first of them.

    >>> every(EdgeClass(60_000_000, 5_000_000))
    'every 1 minute + 5 seconds'
    """
    text = f"every {measure.whole(edges.period)}"
    return text if edges.residue == 0 else f"{text} + {measure.whole(edges.residue)}"


def about(edges: EdgeSet) -> str:
    """Return `≈ ` before a figure that rests on an estimated density, nothing otherwise."""
    return "" if edges.density.exact else "≈ "


def edge_rate(edges: EdgeSet, measure: Measure = TIME) -> str:
    return about(edges) + amount(measure.rate(edges), "edge/s", "edges/s")


def rate_text(partial_set: PartialSet, edges: EdgeSet) -> str:
    """Return the rate of edges, or of other beginnings of cells, of a set or of one of its trees."""
    measure = measure_of(partial_set)
    if partial_set.is_relation:
        return "one version"
    if partial_set.window.is_sliced:
        return edge_rate(edges, measure)
    return f"at most {amount(measure.rate(edges), 'cell/s', 'cells/s')} per group"


def cut_text(partial_set: PartialSet, edges: EdgeSet) -> str:
    """Return how a set, or one of its trees, is sliced."""
    if not partial_set.window.is_sliced:
        return partial_set.window.cells_text
    measure = measure_of(partial_set)
    mean = measure.length(TICKS_PER_SECOND / edges.edges_per_second)
    return f"{edge_rate(edges, measure)}, mean length {about(edges)}{mean}"


def repeats(edges: EdgeSet, measure: Measure = TIME) -> str:
    """Return the time after which the pattern of edges repeats, and the number of edges in it."""
    slide = edges.composite_slide
    if is_astronomic(slide) and not measure.is_of_positions:
        return f"astronomically late: the composite slide is {period(slide)} long"
    edges_in_slide = edges.count_per_composite
    text = count(slide, "row") if measure.is_of_positions else period(slide)
    of = "" if edges_in_slide is None else f" of {count(edges_in_slide, 'edge')}"
    return f"every {text} (composite slide{of})"


def origin_text(origin: Origin) -> str:
    """Return where a figure comes from, and how it changes.

    >>> origin_text(Origin("given")), origin_text(Origin("observed", 1)), origin_text(Origin("observed", 12, 0.08))
    ('given', 'observed in 1 round', 'observed in 12 rounds, rising by 8 % per round')
    """
    if origin.source != "observed":
        return origin.source
    text = f"observed in {count(origin.rounds, 'round')}"
    if abs(origin.trend) < _STEADY:
        return text
    return f"{text}, {'rising' if origin.trend > 0 else 'falling'} by {share(abs(origin.trend))} per round"


def statistics_texts(partial_set: PartialSet) -> Iterator[str]:
    """Yield what is known of a set, in a few lines."""
    known, origins = partial_set.statistics, partial_set.statistics.origins
    rate = amount(known.event_rate, "tuple/s", "tuples/s")
    if partial_set.predicate is None:
        rate += f" ({origin_text(origins.rate)})"
    else:
        rate += f": {share(known.selectivity)} of the stream ({origin_text(origins.selectivity)})"
    groups = f"{amount(known.groups, 'group')} ({origin_text(origins.groups)})" if partial_set.group_by else "one group"
    yield f"{rate}, {groups}"
    evenness, seen = "", origin_text(origins.evenness)
    if known.regularity >= _EVENLY:
        evenness = f"; tuples at even distances ({seen})"
    elif known.spread < _SKEWED:
        evenness = f"; most tuples of few groups: as if spread over {number(known.spread * known.groups)} ({seen})"
    ticks = round(known.round_length * TICKS_PER_SECOND)
    is_whole = ticks % TICKS_PER_SECOND == 0 and ticks
    length = short_duration(ticks) if is_whole else f"{number(known.round_length)} s"
    yield f"a round of {length} ({origin_text(origins.round)}){evenness}"


def statistics_json(partial_set: PartialSet) -> dict[str, Any]:
    known, origins = partial_set.statistics, partial_set.statistics.origins
    edges_per_second = partial_set.edges.edges_per_second
    # Over all groups, for slices that no round cuts in two.
    cells_per_slice = float(known.cells_per_second(np.array([edges_per_second]))[0]) / edges_per_second
    return {
        "tuples_per_second": known.events_per_second,
        "stream_events_per_second": known.stream_rate,
        "selectivity": known.selectivity,
        "groups": known.groups,
        "cells_per_slice": cells_per_slice,
        "round_seconds": known.round_seconds,
        "regularity": known.regularity,
        "spread": known.spread,
        "tuples_per_slice_and_group": known.events_per_second / (edges_per_second * known.groups),
        "origins": asdict(origins),
    }


def length(ticks: float) -> str:
    """Return a length that need not be whole, in the largest unit it fills.

    >>> length(1_666_667), length(7_042_811_000_000), length(400)
    ('1.67 seconds', '81.5 days', '400 microseconds')
    """
    name, size = next((unit for unit in _UNITS if ticks >= unit[1]), _UNITS[-1])
    text = number(ticks / size)
    return f"{text} {name}" if text == "1" and ticks >= size else f"{text} {name}s"


def period(ticks: int) -> str:
    """Return a whole duration, however long: slices may repeat only after more years than atoms exist.

    >>> period(1_000_000_000), period(7_042_811_000_000)
    ('1000 seconds', '7,042,811 seconds, which is 81.5 days')
    >>> period(10**20), period(10**5000)
    ('about 3.17 million years', 'about 10^4987 years')
    """
    years = ticks // _TICKS_PER_YEAR
    if years >= _ASTRONOMIC_YEARS:
        for name, size in (("thousand", 10**3), ("million", 10**6), ("billion", 10**9)):
            if years < 1_000 * size:
                return f"about {number(years / size)} {name} years"
        return f"about 10^{round(log10(ticks) - log10(_TICKS_PER_YEAR))} years"
    plain = format_duration(ticks)
    how_many, unit = plain.split()
    return plain if len(how_many) <= 4 else f"{int(how_many):,} {unit}, which is {length(ticks)}"


def is_astronomic(ticks: int) -> bool:
    return ticks // _TICKS_PER_YEAR >= _ASTRONOMIC_YEARS
