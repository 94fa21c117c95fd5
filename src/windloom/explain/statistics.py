"""The figures that costs are predicted from, as EXPLAIN shows them: each with its origin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from windloom.model.figures import amount, count, number, share, short_duration
from windloom.model.time import TICKS_PER_SECOND
from windloom.plan.physical import PartialSet
from windloom.plan.statistics import Origin, Statistics

#: A regularity above the first, and a spread below the second, are worth showing.
_EVENLY, _SKEWED = 0.5, 0.8
#: A figure that changes by less than this share per round counts as steady.
_STEADY = 0.005


def origin_text(origin: Origin) -> str:
    """
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
    """What is known of a set, in a few lines."""
    known, origins = partial_set.statistics, partial_set.statistics.origins
    rate = amount(known.event_rate, "tuple/s", "tuples/s")
    if partial_set.predicate is None:
        rate += f" ({origin_text(origins.rate)})"
    else:
        rate += f": {share(known.selectivity)} of the stream ({origin_text(origins.selectivity)})"
    groups = f"{amount(known.groups, 'group')} ({origin_text(origins.groups)})" if partial_set.group_by else "one group"
    yield f"{rate}, {groups}"
    evenness = _evenness(known)
    if evenness:
        evenness = f"; {evenness} ({origin_text(origins.evenness)})"
    yield f"a round of {_length(known.round_length)} ({origin_text(origins.round)}){evenness}"


def cells_per_slice(partial_set: PartialSet) -> float:
    """The cells per slice over all groups, for slices that no round cuts in two."""
    rate = partial_set.edges.edges_per_second
    return float(partial_set.statistics.cells_per_second(np.array([rate]))[0]) / rate


def statistics_json(partial_set: PartialSet) -> dict[str, Any]:
    known, origins = partial_set.statistics, partial_set.statistics.origins
    return {
        "tuples_per_second": known.events_per_second,
        "stream_events_per_second": known.stream_rate,
        "selectivity": known.selectivity,
        "groups": known.groups,
        "cells_per_slice": cells_per_slice(partial_set),
        "round_seconds": known.round_seconds,
        "regularity": known.regularity,
        "spread": known.spread,
        "tuples_per_slice_and_group": known.events_per_second / (partial_set.edges.edges_per_second * known.groups),
        "origins": {
            name: origin_json(getattr(origins, name)) for name in ("rate", "selectivity", "groups", "round", "evenness")
        },
    }


def origin_json(origin: Origin) -> dict[str, Any]:
    return {"source": origin.source, "rounds": origin.rounds, "trend": origin.trend}


def _evenness(known: Statistics) -> str:
    if known.regularity >= _EVENLY:
        return "tuples at even distances"
    if known.spread < _SKEWED:
        return f"most tuples of few groups: as if spread over {number(known.spread * known.groups)}"
    return ""


def _length(seconds: float) -> str:
    """
    >>> _length(86400.0), _length(9.8765), _length(200.4)
    ('1 d', '9.88 s', '200 s')
    """
    ticks = round(seconds * TICKS_PER_SECOND)
    return short_duration(ticks) if ticks % TICKS_PER_SECOND == 0 and ticks else f"{number(seconds)} s"
