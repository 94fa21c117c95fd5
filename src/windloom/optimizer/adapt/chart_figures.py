"""Figures: the estimates that plans of a basin depend on; those of the next round, and rounds with like figures.

| figure                     | of                               |
|----------------------------|----------------------------------|
| rate                       | a stream                         |
| length of a round          | a stream, in seconds of its time |
| groups                     | a grouping of a stream           |
| share of tuples            | a predicate on a stream          |

Each of them may be a dimension of a chart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from math import log
from typing import Generic, TypeVar

from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND
from windloom.optimizer.adapt.basins import Basin
from windloom.optimizer.facts import LEAST
from windloom.statistics.estimates import Estimates, Memory, StreamEstimate
from windloom.statistics.observations import RoundObserved
from windloom.statistics.set_statistics import (
    DEFAULT_GROUPS,
    DEFAULT_ROUND_SECONDS,
    DEFAULT_SELECTIVITY,
    Mean,
    SetEstimate,
    SetIdentity,
)

#: The most groupings, and the most predicates, of a basin that have figures.
MOST_ALIKE = 8
#: Figures of rounds that are alike differ by about this share, or less.
LIKE = 0.1
#: At most this many unlike rounds are remembered.
MOST_UNLIKE = 128

#: Logarithms of figures; None for what is unknown.
Point = tuple[float | None, ...]
T = TypeVar("T")


class FigureKind(StrEnum):
    RATE = "rate"
    ROUND = "round"
    GROUPS = "groups"
    SHARE = "share"


UNITS = {FigureKind.RATE: "events/s", FigureKind.ROUND: "s", FigureKind.GROUPS: "groups", FigureKind.SHARE: ""}


@dataclass(frozen=True, slots=True, order=True)
class Figure:
    """`about` is the grouping (its columns) or the predicate, as SQL."""

    kind: FigureKind
    stream: str
    about: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """
        >>> Figure(FigureKind.GROUPS, "trades", ("symbol",)).text
        'groups of trades by symbol'
        """
        match self.kind:
            case FigureKind.RATE:
                return f"rate of {self.stream}"
            case FigureKind.ROUND:
                return f"length of a round of {self.stream}"
            case FigureKind.GROUPS:
                return f"groups of {self.stream} by {', '.join(self.about)}"
            case FigureKind.SHARE:
                return f"share of {self.stream} with {self.about[0]}"


def figures_of(basin: Basin) -> list[Figure]:
    """Return the figures that the plans of a basin depend on, and that may change.

    If there are many groupings, or predicates, those that most sets have.
    """
    groupings: Counter[Figure] = Counter()
    predicates: Counter[Figure] = Counter()
    for identity in basin.identities:
        if identity.grouping:
            groupings[Figure(FigureKind.GROUPS, identity.stream, identity.grouping)] += 1
        if identity.predicate:
            predicates[Figure(FigureKind.SHARE, identity.stream, (identity.predicate,))] += 1
    common = (figure for found in (groupings, predicates) for figure, _ in found.most_common(MOST_ALIKE))
    return [*stream_figures(basin), *common]


def stream_figures(basin: Basin) -> list[Figure]:
    """Return the rate of each of its streams, and the length of a round.

    A round takes in all streams, so its length is one figure, that of the first stream.
    """
    first = next(iter(basin.streams))
    return [*(Figure(FigureKind.RATE, name) for name in basin.streams), Figure(FigureKind.ROUND, first)]


def value_of(figure: Figure, basin: Basin, estimates: Estimates) -> float:
    """Return the value that a figure is taken to have: observed, or else given, or else assumed."""
    seen = estimates.streams.get(figure.stream)
    match figure.kind:
        case FigureKind.RATE:
            given = (basin.enriched.get(figure.stream) or basin.streams[figure.stream]).events_per_second
            assumed = DEFAULT_EVENTS_PER_SECOND if given is None else given
            return max(LEAST, assumed if seen is None else seen.rate.value)
        case FigureKind.ROUND:
            ongoing = basin.known.ongoing
            assumed = DEFAULT_ROUND_SECONDS if ongoing is None else ongoing.round_seconds
            return max(LEAST, assumed if seen is None or seen.round is None else seen.round.value)
        case FigureKind.GROUPS:
            found = (estimates.groups(set_identity) for set_identity in _sets_of(figure, basin))
            return max((mean.value for mean in found if mean is not None and mean.value >= 1), default=DEFAULT_GROUPS)
        case FigureKind.SHARE:
            shares = (estimates.selectivity(set_identity) for set_identity in _sets_of(figure, basin))
            return max(LEAST, next((mean.value for mean in shares if mean is not None), DEFAULT_SELECTIVITY))


def values_of(figures: Iterable[Figure], basin: Basin, estimates: Estimates) -> dict[Figure, float]:
    return {figure: value_of(figure, basin, estimates) for figure in figures}


def remembered(figure: Figure, basin: Basin, memory: Memory) -> float | None:
    """Return the value of a figure in the memory of rounds, without making all estimates; None if none has shown it."""
    match figure.kind:
        case FigureKind.RATE:
            value = memory.rate_of(figure.stream)
        case FigureKind.ROUND:
            value = memory.round_of(figure.stream)
        case FigureKind.GROUPS:
            counted = (memory.groups_of(set_identity) for set_identity in _sets_of(figure, basin))
            value = max((groups for groups in counted if groups is not None and groups >= 1), default=None)
        case FigureKind.SHARE:
            value = memory.share_of(figure.stream, figure.about[0])
    return None if value is None else max(LEAST, value)


def shown(figure: Figure, basin: Basin, seen: RoundObserved) -> float | None:
    """Return the value that one round has shown by itself; None if it has shown none."""
    stream = seen.streams.get(figure.stream)
    if stream is None or not stream.tuples:
        return None
    match figure.kind:
        case FigureKind.RATE:
            value = stream.tuples / stream.seconds if stream.seconds > 0 else 0.0
        case FigureKind.ROUND:
            value = stream.seconds
        case FigureKind.GROUPS:
            identities = (identity for identity in _sets_of(figure, basin) if identity in seen.sets)
            value = max((float(seen.sets[identity].groups) for identity in identities), default=0.0)
        case FigureKind.SHARE:
            value = stream.conditions.get(figure.about[0], 0) / stream.tuples
    return value if value > 0 else None


def with_figures(estimates: Estimates, basin: Basin, wanted: Mapping[Figure, float]) -> Estimates:
    """Return estimates in which some figures have other values, and all else is as it was.

    The groups of a grouping grow or shrink by the same factor for all predicates. Streams made by enriching move with
    the rate of their stream; with the length of a round, all do.
    """
    now = values_of(wanted, basin, estimates)
    streams, sets = dict(estimates.streams), dict(estimates.sets)
    for figure, value in wanted.items():
        streams[figure.stream] = _moved_stream(figure, value, basin, streams.get(figure.stream), estimates)
        others = list[str]()
        if figure.kind in (FigureKind.RATE, FigureKind.ROUND):
            enriched = (name for name, stream in basin.enriched.items() if stream.base == figure.stream)
            others += [name for name in enriched if name in streams]
        if figure.kind is FigureKind.ROUND:
            others += [name for name in basin.streams if name != figure.stream]
        for name in others:
            own = value_of(replace(figure, stream=name), basin, estimates) * value / now[figure]
            streams[name] = _moved_stream(replace(figure, stream=name), own, basin, streams.get(name), estimates)
        for identity in _sets_of(figure, basin):
            before = sets.get(identity)
            if before is None:
                share = estimates.selectivity(identity) or Mean(DEFAULT_SELECTIVITY if identity.predicate else 1.0, 1)
                groups = estimates.groups(identity) or Mean(DEFAULT_GROUPS if identity.grouping else 1.0, 1)
                before = SetEstimate(share, groups, Mean(groups.value, 1))
            if figure.kind is FigureKind.SHARE:
                sets[identity] = replace(before, selectivity=Mean(value, before.selectivity.rounds))
            else:
                groups = Mean(max(1.0, before.groups.value * value / now[figure]), max(1, before.groups.rounds))
                sets[identity] = replace(before, groups=groups)
    return Estimates(streams, sets)


def _sets_of(figure: Figure, basin: Basin) -> Sequence[SetIdentity]:
    """Return the sets whose statistics depend on a figure that is not about the whole stream."""
    match figure.kind:
        case FigureKind.GROUPS:
            return basin.having.get((figure.stream, figure.about), ())
        case FigureKind.SHARE:
            return basin.having.get((figure.stream, figure.about[0]), ())
        case _:
            return ()


def _moved_stream(
    figure: Figure, value: float, basin: Basin, seen: StreamEstimate | None, estimates: Estimates
) -> StreamEstimate:
    if seen is None:
        rate = value_of(Figure(FigureKind.RATE, figure.stream), basin, estimates)
        seen = StreamEstimate(Mean(rate, 1), None)
    match figure.kind:
        case FigureKind.RATE:
            return replace(seen, rate=Mean(value, seen.rate.rounds))
        case FigureKind.ROUND:
            return replace(seen, round=Mean(value, 1 if seen.round is None else seen.round.rounds))
        case FigureKind.GROUPS:
            return seen
        case FigureKind.SHARE:
            return replace(seen, conditions={**seen.conditions, figure.about[0]: value})


class ExpectedRound:
    """What is expected of the next round: what its source announces, or else what is remembered of earlier rounds."""

    def __init__(self, memory: Memory, learned: Estimates, coming: RoundObserved | None = None) -> None:
        """`learned` are the estimates from earlier runs; `coming` is what is announced of the round, if anything."""
        self._memory, self._learned, self._coming = memory, learned, coming
        self._remembered: dict[tuple[str, Figure], float | None] = {}  # figures are asked for several times

    def value(self, figure: Figure, basin: Basin) -> float | None:
        """Return the value of a figure; None if neither a source nor a round has shown one."""
        announced = None if self._coming is None else shown(figure, basin, self._coming)
        if announced is not None:
            return announced
        key = (basin.name, figure)
        if key not in self._remembered:
            self._remembered[key] = remembered(figure, basin, self._memory)
        return self._remembered[key]

    def estimates(self, basin: Basin) -> Estimates:
        """Return all that is estimated for a basin, with the figures of its streams that are announced."""
        coming, estimates = self._coming, self._memory.estimates().before(self._learned)
        if coming is None:
            return estimates
        announced = ((figure, shown(figure, basin, coming)) for figure in stream_figures(basin))
        return with_figures(estimates, basin, {figure: value for figure, value in announced if value is not None})

    def again(self) -> ExpectedRound:
        """Return what is expected of this round now, after further rounds."""
        return ExpectedRound(self._memory, self._learned, self._coming)


class LikeRounds(Generic[T]):
    """What was predicted for rounds, to be used again for rounds that are alike: whose figures differ by little.

    It is replaced as a whole, so that another thread may read it.
    """

    def __init__(self) -> None:
        self._entries: tuple[tuple[Point, Hashable, T], ...] = ()  # newest first

    def get(self, point: Point, key: Hashable = None) -> T | None:
        return next((value for near, other, value in self._entries if _alike(near, point) and other == key), None)

    def put(self, value: T, point: Point, key: Hashable = None) -> None:
        """Replaces what was predicted for rounds alike, and forgets the oldest if there are too many."""
        others = (entry for entry in self._entries if not (_alike(entry[0], point) and entry[1] == key))
        self._entries = ((point, key, value), *islice(others, MOST_UNLIKE - 1))


def point_of(values: Iterable[float | None]) -> Point:
    """Return where figures with these values, of which some may be unknown, lie among others."""
    return tuple(None if value is None else log(value) for value in values)


def point_shown(figures: Iterable[Figure], basin: Basin, seen: RoundObserved) -> Point:
    """Return the point of a round that was observed: its figures, and how many cells its tuples make."""
    values = [shown(figure, basin, seen) for figure in figures]
    own = [seen.sets[identity] for identity in basin.identities if identity in seen.sets]
    tuples, cells = sum(each.tuples for each in own), sum(each.cells for each in own)
    return point_of([*values, cells / tuples if tuples and cells else None])


def _alike(point: Point, other: Point) -> bool:
    return all(
        a is b or (a is not None and b is not None and abs(a - b) <= LIKE) for a, b in zip(point, other, strict=True)
    )
