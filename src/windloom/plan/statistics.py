"""What a plan's cost depends on beside its queries: rates, groups, the length of a round; and who said so."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND
from windloom.model.time import TICKS_PER_SECOND

Floats = NDArray[np.float64]

#: Where slices are of positions and not of time, a position is a tick, and so this many are a second.
POSITIONS_PER_SECOND = float(TICKS_PER_SECOND)
#: Groups assumed of a GROUP BY that nobody has counted.
DEFAULT_GROUPS = 100.0
#: Seconds of event time that one round is assumed to hold: a batch run of a day.
DEFAULT_ROUND_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Statistics:
    """Of one partial set. A source is `given`, `measured` (by the last run) or `assumed`.

    Where slices are of positions, a second is a million positions, and `pace` of these pass in a second of event time.
    `regularity` is 0 where tuples come by chance and 1 where those of a group come at even distances.
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
        """Tuples in a second of event time."""
        return self.events_per_second * self.pace

    @property
    def round_length(self) -> float:
        """Seconds of event time that a round holds."""
        return self.round_seconds / self.pace

    def tuples_per_cell(self, edges_per_second: Floats) -> Floats:
        """Tuples that a slice holds for one group, on average, empty slices included."""
        return np.asarray(self.events_per_second / (edges_per_second * self.groups))

    def filled(self, edges_per_second: Floats) -> Floats:
        """Share of the slices of a group that hold a tuple."""
        tuples = self.tuples_per_cell(edges_per_second)
        by_chance = -np.expm1(-tuples)
        return np.asarray(by_chance + self.regularity * (np.minimum(1.0, tuples) - by_chance))

    def cells_per_second(self, edges_per_second: Floats) -> Floats:
        """Cells of all groups: slices that hold a tuple; never more than there are tuples.

        >>> one = Statistics(1000.0, groups=100.0)
        >>> one.cells_per_second(np.array([1.0, 1e6])).round().tolist()
        [100.0, 1000.0]
        """
        return np.asarray(edges_per_second * self.groups * self.filled(edges_per_second))


@dataclass(frozen=True, slots=True)
class Observed:
    """What a run saw of one partial set."""

    tuples: int
    groups: int
    seconds: float  # of event time, from its first slice to its last
    regularity: float = 0.0  # see `regularity_of`


def regularity_of(tuples: float, cells: float, slices: float) -> float:
    """How evenly tuples come, from how many of the slices (of all groups) held one.

    >>> [round(regularity_of(1000, cells, 1000), 2) for cells in (632, 1000)]
    [0.0, 1.0]
    """
    if slices <= 0:
        return 0.0
    mean = tuples / slices
    by_chance, most = -float(np.expm1(-mean)), min(1.0, mean)
    if most - by_chance < 0.01:  # nearly all slices are full, or nearly all tuples alone, either way
        return 0.0
    return float(np.clip((cells / slices - by_chance) / (most - by_chance), 0.0, 1.0))


def statistics_of(
    given_rate: float | None, is_filtered: bool, is_grouped: bool, observed: Observed | None
) -> Statistics:
    """What was given goes before what a run measured, and that before what is assumed.

    The rate that was given is the stream's: behind a predicate a measured one is nearer to the truth.
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
