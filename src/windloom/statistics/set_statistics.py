"""The statistics of sets: what a round counts of them, what rounds show together, and what costs are made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from windloom.model.arrays import Floats
from windloom.model.expression import Expression
from windloom.model.predicate import Predicate
from windloom.model.query import Query
from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND
from windloom.model.time import TICKS_PER_SECOND
from windloom.model.windows import Window

#: If slices are of positions instead of time, a position is a tick, so this many positions are a second.
POSITIONS_PER_SECOND = float(TICKS_PER_SECOND)
#: The number of groups that is assumed for a GROUP BY if it was not observed.
DEFAULT_GROUPS = 100.0
#: The share of tuples that a predicate is assumed to let through if that was not observed.
DEFAULT_SELECTIVITY = 0.5
#: More signatures than any stream has tuples; keeps products finite.
MOST_SIGNATURES = 1e12
#: The length of a round that is assumed, in seconds of event time: a batch run of a day; a micro-batch of a stream.
DEFAULT_RUN_SECONDS = 86_400.0
DEFAULT_ROUND_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a figure: the user has `given` it, it was `observed` in rounds, or it is `assumed`.

    `trend` is the share by which an observed figure changes from one round to the next; 0 if that is not certain.
    """

    source: str = "assumed"
    rounds: int = 0
    trend: float = 0.0


ASSUMED, GIVEN = Origin("assumed"), Origin("given")


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of the figures of a set: of the rate of its stream, of the share of it that the set wants, …"""

    rate: Origin = ASSUMED
    selectivity: Origin = GIVEN  # a set without a predicate wants every tuple
    groups: Origin = ASSUMED
    round: Origin = ASSUMED
    evenness: Origin = ASSUMED


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of one partial set.

    `events_per_second` are tuples of the set, the share `selectivity` of those of its stream. If slices are of
    positions, a second is a million positions, and `pace` such seconds pass per second of event time.

    Tuples may come more evenly than at random, or less. `regularity` is 0 if they come at random and 1 if those of a
    group come at even distances. `spread` is the share of the groups that tuples effectively spread over: less than 1
    if most tuples belong to a few groups.

    `conditions` are, by SQL, the shares of the stream's tuples that were seen to satisfy a condition; all of them have
    `signatures` different signatures. In a stream, a round also reads the cells of `kept_seconds` before it.
    """

    events_per_second: float
    groups: float = 1.0
    round_seconds: float = DEFAULT_RUN_SECONDS
    pace: float = 1.0
    regularity: float = 0.0
    spread: float = 1.0
    selectivity: float = 1.0
    conditions: Mapping[str, float] = field(default_factory=dict)
    signatures: float = MOST_SIGNATURES
    kept_seconds: float = 0.0
    is_ongoing: bool = False  # rounds follow one another, and each window is answered in one of them
    origins: Origins = field(default_factory=Origins)

    def of_positions(self, is_partitioned: bool) -> Statistics:
        """Return the statistics if slices are of positions: each has a tuple, for every key that is counted alone."""
        tuples = POSITIONS_PER_SECOND * (self.groups if is_partitioned else 1.0)
        pace = self.events_per_second / tuples
        return replace(self, events_per_second=tuples, round_seconds=self.round_seconds * pace, pace=pace)

    @property
    def amounts(self) -> tuple[float, ...]:
        """Everything that the cost of keeping cells and of answering from them depends on."""
        return (
            self.events_per_second,
            self.groups,
            self.round_seconds,
            self.pace,
            self.regularity,
            self.spread,
            self.kept_seconds,
            self.is_ongoing,
        )

    @property
    def event_rate(self) -> float:
        """Tuples of the set per second of event time."""
        return self.events_per_second * self.pace

    @property
    def stream_rate(self) -> float:
        """Tuples of the stream per second of event time."""
        return self.event_rate / self.selectivity

    @property
    def round_length(self) -> float:
        """The length of a round in seconds of event time."""
        return self.round_seconds / self.pace

    @property
    def readings(self) -> float:
        """The number of rounds that read a cell: one in a batch run; in a stream, all until no window needs it."""
        return 1.0 + self.kept_seconds / self.round_seconds

    def windows_past_ends(self, ranges: Floats) -> Floats:
        """Return the share of windows that are answered though they extend past the ends of a batch run."""
        return np.zeros_like(ranges) if self.is_ongoing else np.asarray(ranges / self.round_seconds)

    def tuples_per_cell(self, edges_per_second: Floats) -> Floats:
        """Return the average number of tuples in a slice of one group, including empty slices."""
        return np.asarray(self.events_per_second / (edges_per_second * self.groups))

    def filled(self, edges_per_second: Floats) -> Floats:
        """Return the share of a group's slices that hold a tuple."""
        tuples = self.tuples_per_cell(edges_per_second)
        by_chance = -np.expm1(-tuples / self.spread) * self.spread
        return np.asarray(by_chance + self.regularity * (np.minimum(1.0, tuples) - by_chance))

    def cells_per_second(self, edges_per_second: Floats) -> Floats:
        """Return the cells of all groups, that is, slices that hold a tuple; never more than there are tuples.

        >>> one = Statistics(1000.0, groups=100.0)
        >>> one.cells_per_second(np.array([1.0, 1e6])).round().tolist()
        [100.0, 1000.0]
        """
        return np.asarray(edges_per_second * self.groups * self.filled(edges_per_second))

    def taken_per_second(self, edges_per_second: Floats) -> Floats:
        """Return the cells that rounds add: a slice that lies in several rounds is added by each of them."""
        if not self.is_ongoing:
            return self.cells_per_second(edges_per_second)
        return self.cells_per_second(edges_per_second + 1.0 / self.round_seconds)


@dataclass(frozen=True, slots=True)
class SetRound:
    """A set in one round: its `tuples` became `cells`, over `slices` of its slices.

    Windows were answered from cells of `groups` groups, those of earlier rounds included: `held` cells in all.
    """

    tuples: int
    cells: int
    groups: int
    held: int
    slices: float


@dataclass(frozen=True, slots=True)
class Mean:
    """An estimate from `rounds` rounds; `trend` is the share by which it changes per round, 0 if that is uncertain."""

    value: float
    rounds: int
    trend: float = 0.0


@dataclass(frozen=True, slots=True)
class SetEstimate:
    """The estimated figures of a set.

    `selectivity` is the share of its stream's tuples that a set wants, `cells` are made per slice.

    For `regularity` and `spread`, see `Statistics`.
    """

    selectivity: Mean
    groups: Mean
    cells: Mean
    regularity: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(
        cls,
        rounds: Sequence[SetRound],
        came: Sequence[int],
        weights: Sequence[float],
        mean: Callable[[Sequence[float]], Mean],
    ) -> SetEstimate:
        """Return the figures of a set after these rounds, newest first; `came` are the tuples of its stream in each.

        `weights` say how much each of them counts; `mean` forgets, and sees trends.
        """
        tuples = weighed(weights, [each.tuples for each in rounds])
        cells = weighed(weights, [each.cells for each in rounds])
        # The edges of rounds also cut cells: a round of n slices has parts of n + 1.
        slices = weighed(weights, [each.slices + 1.0 for each in rounds])
        groups = mean([float(each.groups) for each in rounds if each.groups])
        shares = mean([min(1.0, each.tuples / beside) for each, beside in zip(rounds, came, strict=True)])
        regularity = regularity_of(tuples, cells, groups.value * slices)
        return cls(
            replace(shares, value=min(1.0, tuples / weighed(weights, came))),
            groups,
            Mean(cells / slices, len(rounds)),
            regularity,
            1.0 if regularity > 0 else spread_of(tuples, cells, groups.value, slices),
        )

    def shown_in(self, statistics: Statistics) -> Statistics:
        """Return the statistics with the figures that nothing but rounds can show."""
        return replace(statistics, regularity=self.regularity, spread=self.spread)


def regularity_of(tuples: float, cells: float, slices: float) -> float:
    """Return how evenly tuples come, judged by how many of the slices (of all groups) held one.

    >>> [round(regularity_of(1000, cells, 1000), 2) for cells in (632, 1000)]
    [0.0, 1.0]
    """
    if slices <= 0:
        return 0.0
    mean = tuples / slices
    by_chance, most = -math.expm1(-mean), min(1.0, mean)
    if most - by_chance < 0.01:  # in either case, nearly all slices are full or nearly all tuples are alone
        return 0.0
    return min(1.0, max(0.0, (cells / slices - by_chance) / (most - by_chance)))


def spread_of(tuples: float, cells: float, groups: float, slices: float) -> float:
    """Return the share of the groups over which this many tuples, spread at random, would make this many cells.

    >>> round(spread_of(1000, 100 * (1 - math.exp(-10)), 100, 1), 3), round(spread_of(1000, 50, 100, 1), 3)
    (1.0, 0.5)
    """
    if min(tuples, cells, groups, slices) <= 0:
        return 1.0
    cells_per_slice, mean = cells / slices, tuples / slices
    low, high = min(cells_per_slice, groups), groups
    if cells_per_slice >= -high * math.expm1(-mean / high) * (1 - 1e-9):
        return 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if -middle * math.expm1(-mean / middle) < cells_per_slice:
            low = middle
        else:
            high = middle
    return high / groups


def weighed(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, values, strict=False))


@dataclass(frozen=True, slots=True)
class Ongoing:
    """The expected rounds of a stream before any has run; `history_seconds` of cells are kept."""

    round_seconds: float = DEFAULT_ROUND_SECONDS
    origin: Origin = ASSUMED
    history_seconds: float = 0.0


def assumed_statistics(given_rate: float | None, is_filtered: bool = False, is_grouped: bool = False) -> Statistics:
    """Return the statistics that are assumed of a set in a batch run."""
    rate = DEFAULT_EVENTS_PER_SECOND if given_rate is None else given_rate
    selectivity = DEFAULT_SELECTIVITY if is_filtered else 1.0
    origins = Origins(
        rate=ASSUMED if given_rate is None else GIVEN,
        selectivity=ASSUMED if is_filtered else GIVEN,
        groups=ASSUMED if is_grouped else GIVEN,
    )
    groups = DEFAULT_GROUPS if is_grouped else 1.0
    return Statistics(rate * selectivity, groups, selectivity=selectivity, origins=origins)


def differ(statistics: Statistics, other: Statistics, share: float = 0.25) -> bool:
    """Return whether two statistics differ so much that costs should be predicted again."""
    pairs = (
        (getattr(statistics, name), getattr(other, name))
        for name in ("events_per_second", "groups", "round_seconds", "selectivity", "pace")
    )
    return any(abs(left - right) > share * max(left, right) for left, right in pairs)


# The identity that makes two partial sets the same: a value that is derived from a query or from a set, in any plan.
#
# Queries with the same identity are summarised together. Whatever is kept about a set from plan to plan (a run's
# observations of it, the cells that a stream keeps, the trees that live queries form) is found by this value.


class Difference(StrEnum):
    """The ways in which two identities differ."""

    STREAM = "stream"
    PREDICATE = "predicate"
    GROUPING = "grouping"
    WINDOWS = "kind of window"


@dataclass(frozen=True, slots=True, order=True)
class SetIdentity:
    """Everything is canonical SQL, which is equal if the meaning is equal, and gives the sets of a plan an order.

    `predicate` is empty if every tuple is wanted. Predicates on which Spark may fail differ by the order of
    their parts, because one part may guard another: `a <> 0 AND b / a > 1`.
    `grouping` has no order and no names: `GROUP BY a, b` and `GROUP BY b AS x, a` are one grouping.
    `windows` is what the kind of window adds: nothing if slices are stretches of time; if they are stretches of
    positions, its name and the keys by which tuples are counted; for sessions, their gap.
    """

    stream: str
    predicate: str = ""
    grouping: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        stream: str,
        predicate: Predicate | None,
        group_by: Iterable[Expression],
        window: Window,
    ) -> SetIdentity:
        return cls(
            stream,
            "" if predicate is None else predicate.sql,
            tuple(expression.sql for expression in group_by),
            window.set_identity,
        )

    @classmethod
    def of_query(cls, query: Query) -> SetIdentity:
        """Return the identity of the set that answers a query."""
        return cls.of(query.stream, query.condition, set_grouping(query), query.window)

    def differences(self, other: SetIdentity) -> tuple[Difference, ...]:
        """Return the ways in which two identities differ.

        >>> [str(one) for one in SetIdentity("s", "x > 1").differences(SetIdentity("s", "", ("k",)))]
        ['predicate', 'grouping']
        """
        pairs = (
            (Difference.STREAM, self.stream, other.stream),
            (Difference.PREDICATE, self.predicate, other.predicate),
            (Difference.GROUPING, self.grouping, other.grouping),
            (Difference.WINDOWS, self.windows, other.windows),
        )
        return tuple(difference for difference, mine, its in pairs if mine != its)


def set_grouping(query: Query) -> tuple[Expression, ...]:
    """Return the grouping columns of the set that answers a query, each once and in the set's order."""
    return tuple(sorted({grouping.expression for grouping in query.group_by}))
