"""Which sets are fed by one scan, by predicted cost.

A tuple is read once for every scan. What a scan of several sets costs more is finer partials: more slices, a partial
for each signature that occurs, and for each combination of all its grouping columns. Source A, section 5.3 (shared data
shards), and the phantoms of multiple aggregations: a grouping that nobody asked for, from which others are rolled up.

First sets of one grouping are put together: those whose predicates read the same columns at once, since their
signatures hardly multiply, then pairs of what that gave while it pays. Then the same with pairs of any grouping.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from windloom.errors import WindloomError, near_names
from windloom.model.expression import Expression
from windloom.model.stream import Stream
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.scans.build import build_scan, build_scans, is_fed
from windloom.optimizer.scans.cost import scanned
from windloom.plan.physical import PartialSet, Scan

#: How scans are formed: by predicted cost, one for every set, or one for all sets of a stream.
SCANS = ("auto", "apart", "together")

#: Seconds that one more part of a round's job takes, however few tuples it has: tasks, and a shuffle of its own.
PART_SECONDS = 0.15
#: More scans than this are not compared in pairs: they are as many as they are for good reason, or nobody can wait.
MOST_PAIRED = 32


def check_scans(name: str) -> None:
    if name not in SCANS:
        raise WindloomError(
            f"unknown way to form scans '{name}'",
            "it says which queries one reading of a stream feeds",
            near_names(name, list(SCANS)),
        )


def form_scans(
    streams: Iterable[Stream], sets: Sequence[PartialSet], way: str, constants: Constants
) -> tuple[Scan, ...]:
    """Scans that feed all sets of which a tuple can be part."""
    groups: list[list[PartialSet]] = []
    for stream in streams:
        # Slices are of time, or of positions that are counted in one way: only sets of one kind can share a reading.
        kinds: dict[tuple[Expression, ...] | None, list[PartialSet]] = {}
        for one in sets:
            if one.stream == stream.name and is_fed(one):
                kinds.setdefault(one.counted_by, []).append(one)
        for own in kinds.values():
            if way == "apart":
                groups += [[one] for one in own]
            elif way == "together":
                groups.append(own)
            else:
                groups += _Search(constants, _rate(stream, own), own).partition()
    return build_scans(groups)


def _rate(stream: Stream, sets: Sequence[PartialSet]) -> float:
    """Tuples in a second, or in a million positions."""
    most = max(one.statistics.events_per_second for one in sets)
    return most if sets[0].counted_by is not None else stream.events_per_second or most


@dataclass
class _Search:
    constants: Constants
    events_per_second: float  # of the whole stream
    sets: Sequence[PartialSet]
    _costs: dict[tuple[int, ...], float] = field(default_factory=dict)

    def partition(self) -> list[list[PartialSet]]:
        by_grouping: dict[tuple[Expression, ...], list[PartialSet]] = {}
        for one in self.sets:
            by_grouping.setdefault(one.group_by, []).append(one)
        found: list[list[PartialSet]] = []
        for own in by_grouping.values():
            found += self._merged(_by_columns(own))
        return self._merged(found)

    def _merged(self, groups: list[list[PartialSet]]) -> list[list[PartialSet]]:
        """Greedily, the pair that saves most first; everything at once where even that is no loss."""
        if len(groups) > 1:
            everything = [one for group in groups for one in group]
            if len(groups) > MOST_PAIRED:
                return [everything] if self.cost(everything) <= sum(map(self.cost, groups)) else groups
        gains = {pair: self._gain(*pair, groups) for pair in combinations(range(len(groups)), 2)}
        alive = dict(enumerate(groups))
        while gains:
            (left, right), gain = max(gains.items(), key=lambda item: (item[1], -item[0][0], -item[0][1]))
            if gain <= 0:
                break
            alive[left] = alive[left] + alive.pop(right)
            gains = {pair: each for pair, each in gains.items() if left not in pair and right not in pair}
            for other in alive:
                if other != left:
                    pair = (min(left, other), max(left, other))
                    gains[pair] = self._gain(*pair, alive)
        return list(alive.values())

    def _gain(self, left: int, right: int, groups: Sequence[list[PartialSet]] | dict[int, list[PartialSet]]) -> float:
        return self.cost(groups[left]) + self.cost(groups[right]) - self.cost(groups[left] + groups[right])

    def cost(self, sets: Sequence[PartialSet]) -> float:
        """Seconds for every second of event time, up to the cells of the sets."""
        key = tuple(sorted(one.number for one in sets))
        if key not in self._costs:
            found = scanned(self.constants, build_scan(0, sets), sets, self.events_per_second)
            a_part = PART_SECONDS / max(one.statistics.round_seconds for one in sets)
            self._costs[key] = found.total + a_part
        return self._costs[key]


def _by_columns(sets: Sequence[PartialSet]) -> list[list[PartialSet]]:
    """Sets whose predicates read common columns, directly or through others', together."""
    found: list[tuple[set[str], list[PartialSet]]] = []
    for one in sets:
        columns = set() if one.where is None else set(one.where.columns)
        own, rest = [one], []
        for other, group in found:
            if other & columns:
                columns |= other
                own = group + own
            else:
                rest.append((other, group))
        found = [*rest, (columns, own)]
    return [group for _, group in found]
