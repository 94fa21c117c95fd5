"""What the cost of a plan depends on besides its queries: rates, groups, the length of a round; and their sources."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND
from windloom.model.time import TICKS_PER_SECOND

Floats = NDArray[np.float64]

#: If slices are of positions and not of time, a position is a tick, so this many are a second.
POSITIONS_PER_SECOND = float(TICKS_PER_SECOND)
#: The number of groups that is assumed for a GROUP BY if it was not measured.
DEFAULT_GROUPS = 100.0
#: The length of a round that is assumed, in seconds of event time: a batch run of a day.
DEFAULT_ROUND_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of one partial set. A source is `given`, `measured` (by the last run) or `assumed`.

    If slices are of positions, a second is a million positions, and `pace` of these pass per second of event time.
    `regularity` is 0 if tuples come at random and 1 if those of a group come at even distances.
    """

    events_per_second: float
    groups: float = 1.0
    round_seconds: float = DEFAULT_ROUND_SECONDS
    rate_source: str = "assumed"
    groups_source: str = "assumed"
    round_source: str = "assumed"
    pace: float = 1.0
    regularity: float = 0.0

    def of_positions(self, is_partitioned: bool) -> Statistics:
        """The same where slices are of positions: there is a tuple at each, of each key that is counted by itself."""
        tuples = POSITIONS_PER_SECOND * (self.groups if is_partitioned else 1.0)
        pace = self.events_per_second / tuples
        return replace(self, events_per_second=tuples, round_seconds=self.round_seconds * pace, pace=pace)

    @property
    def event_rate(self) -> float:
        """Tuples per second of event time."""
        return self.events_per_second * self.pace

    @property
    def round_length(self) -> float:
        """The length of a round in seconds of event time."""
        return self.round_seconds / self.pace

    def tuples_per_cell(self, edges_per_second: Floats) -> Floats:
        """The average number of tuples in a slice of one group, including empty slices."""
        return np.asarray(self.events_per_second / (edges_per_second * self.groups))

    def filled(self, edges_per_second: Floats) -> Floats:
        """The share of a group's slices that hold a tuple."""
        tuples = self.tuples_per_cell(edges_per_second)
        by_chance = -np.expm1(-tuples)
        return np.asarray(by_chance + self.regularity * (np.minimum(1.0, tuples) - by_chance))

    def cells_per_second(self, edges_per_second: Floats) -> Floats:
        """The cells of all groups, that is, slices that hold a tuple; never more than there are tuples.

        >>> one = Statistics(1000.0, groups=100.0)
        >>> one.cells_per_second(np.array([1.0, 1e6])).round().tolist()
        [100.0, 1000.0]
        """
        return np.asarray(edges_per_second * self.groups * self.filled(edges_per_second))


@dataclass(frozen=True, slots=True)
class Observed:
    """What a run observed of one partial set."""

    tuples: int
    groups: int
    seconds: float  # of event time, from its first slice to its last
    regularity: float = 0.0  # see `regularity_of`


def regularity_of(tuples: float, cells: float, slices: float) -> float:
    """How evenly tuples come, judged by how many of the slices (of all groups) held one.

    >>> [round(regularity_of(1000, cells, 1000), 2) for cells in (632, 1000)]
    [0.0, 1.0]
    """
    if slices <= 0:
        return 0.0
    mean = tuples / slices
    by_chance, most = -float(np.expm1(-mean)), min(1.0, mean)
    if most - by_chance < 0.01:  # in either case, nearly all slices are full or nearly all tuples are alone
        return 0.0
    return float(np.clip((cells / slices - by_chance) / (most - by_chance), 0.0, 1.0))


def statistics_of(
    given_rate: float | None, is_filtered: bool, is_grouped: bool, observed: Observed | None
) -> Statistics:
    """A given figure takes precedence over a measured one, and that over an assumed one.

    A given rate is that of the whole stream, so behind a predicate a measured one takes precedence.
    """
    measured = observed is not None and observed.tuples > 0 and observed.seconds > 0
    rate, rate_source = DEFAULT_EVENTS_PER_SECOND, "assumed"
    if given_rate is not None and not (is_filtered and measured):
        rate, rate_source = given_rate, "given"
    elif observed is not None and measured:
        rate, rate_source = observed.tuples / observed.seconds, "measured"
    groups, groups_source = (DEFAULT_GROUPS, "assumed") if is_grouped else (1.0, "given")
    if observed is not None and observed.groups > 0 and is_grouped:
        groups, groups_source = float(observed.groups), "measured"
    if observed is not None and measured:
        return Statistics(
            rate, groups, observed.seconds, rate_source, groups_source, "measured", regularity=observed.regularity
        )
    return Statistics(rate, groups, DEFAULT_ROUND_SECONDS, rate_source, groups_source)
