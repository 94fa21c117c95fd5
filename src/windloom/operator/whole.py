"""The answers of one bucket in a batch run: one step over all that its tasks have sent, with nothing kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from windloom.answers.answers import Answers
from windloom.operator.buckets import at_the_end
from windloom.operator.parts import Part
from windloom.plan.plan import Plan
from windloom.rounds.lateness import Lateness
from windloom.rounds.step import StepCounts, step
from windloom.state.cells import Cells
from windloom.state.positions import Positions, counted_scans, counting_of
from windloom.state.state import State
from windloom.statistics.observations import LinkRound
from windloom.weave.round_input import ScanResult
from windloom.weave.weave import ScanCounts, Ticks


@dataclass(frozen=True, slots=True)
class Beside:
    """What the driver sends to every bucket: cells of relations, and ticks of streams that no scan sees whole."""

    cells: Mapping[int, Cells] = field(default_factory=dict)
    ticks: Mapping[str, Ticks] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BucketFacts:
    """What a bucket, or all buckets together, have counted. `took` are the seconds of queries that are answered
    together, by the name of the first of them.

    Every bucket knows the same `ticks`; the first one has the counts of scans.
    """

    counts: StepCounts = field(default_factory=lambda: StepCounts({}, {}))
    ticks: Mapping[str, Ticks] = field(default_factory=dict)
    scanned: Mapping[int, ScanCounts] = field(default_factory=dict)
    took: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def together(cls, facts: Iterable[BucketFacts]) -> BucketFacts:
        """Return the facts of all buckets; every group belongs to one of them."""
        found = list(facts)
        counts = [each.counts for each in found]
        links: dict[tuple[int, int], LinkRound] = {}
        for of_bucket in counts:
            for place, link in of_bucket.links.items():
                links[place] = links[place] + link if place in links else link
        took: dict[str, float] = {}
        for each in found:
            for name, seconds in each.took.items():
                took[name] = took.get(name, 0.0) + seconds
        return cls(
            StepCounts(
                _added(each.tuples for each in counts),
                _added(each.partials for each in counts),
                Lateness(),
                _added(each.groups for each in counts),
                _added(each.held for each in counts),
                links,
            ),
            found[0].ticks if found else {},
            next((each.scanned for each in found if each.scanned), {}),
            took,
        )


def answer_bucket(plan: Plan, part: Part, beside: Beside) -> tuple[Answers, StepCounts]:
    """Return all answers of the groups of a bucket, and what its step has counted."""
    largest, smallest = span_of(plan, {**part.ticks, **beside.ticks})
    given = at_the_end(plan)(State(), largest, smallest).taking(ScanResult({**beside.cells, **part.cells}))
    counted = [scan for scan in counted_scans(plan) if scan.number in part.counted]
    if counted:
        given = replace(given, rows=Positions({}, {counting_of(scan): part.counted[scan.number] for scan in counted}))
    _, answers, counts = step(State(), given, plan)
    return answers, counts


def span_of(plan: Plan, ticks: Mapping[str, Ticks]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the largest and the smallest tick of each stream; an enriched stream has no time of its own."""
    of_streams = [(stream.name, ticks[stream.name]) for stream in plan.streams if stream.name in ticks]
    largest = {name: seen.last for name, seen in of_streams if seen.last is not None}
    return largest, {name: seen.first for name, seen in of_streams if seen.first is not None}


def _added(counts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for count in counts:
        for number, value in count.items():
            total[number] = total.get(number, 0) + value
    return total
