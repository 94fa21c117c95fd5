"""Previews: what the files of a micro-batch hold, counted in a separate reading before the round.

The footers of files show how many tuples come, and nothing about them. If a round is small, it takes milliseconds to
read its columns and count how many tuples satisfy each predicate, and how many cells they make. Like everything that is
known of a round before it begins, this only helps to choose a plan: what cannot be read easily is not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from windloom.optimizer.intake.local import local_projection
from windloom.optimizer.intake.woven import woven_scan
from windloom.plan.identity import SetIdentity
from windloom.plan.observed import Coming, RoundObserved, SetRound, StreamRound
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.scans import WovenScan
from windloom.rounds.evaluate import DeclinedError
from windloom.rounds.scanned import timed_tuples
from windloom.rounds.taken import take_tuples
from windloom.spark.intake.files import units_of, whole_tuples

#: No preview is made of a stream that brings more tuples than this.
MOST_TUPLES = 1 << 16


@dataclass(frozen=True, slots=True)
class _Counting:
    """A scan that counts the tuples of the sets of a stream, and nothing else; None if only Spark can read it."""

    cut: tuple[object, ...]  # identifies the sets and their edges
    plan: Plan
    scan: WovenScan | None


@dataclass(slots=True)
class Preview:
    """Counts what comes for the sets of a plan; scans are remembered, because making them takes parsing."""

    _known: dict[str, _Counting] = field(default_factory=dict)

    def __call__(
        self, plan: Plan, coming: Mapping[str, Coming], rounds: Mapping[str, StreamRound]
    ) -> Callable[[], RoundObserved | None] | None:
        """A function that makes a preview of a round; None if there is nothing to read. `rounds` are known already.

        It returns the round as it will be observed, without groups and cells of earlier rounds; None if nothing is
        shown.
        """
        files = {name: came.files for name, came in coming.items() if came.files and came.tuples <= MOST_TUPLES}
        return partial(self._round, plan, files, rounds) if files.keys() & rounds.keys() else None

    def _round(
        self, plan: Plan, files: Mapping[str, Sequence[str]], rounds: Mapping[str, StreamRound]
    ) -> RoundObserved | None:
        streams, sets = dict(rounds), dict[SetIdentity, SetRound]()
        for name, own in rounds.items():
            shown = self._shown(plan, name, files[name], own) if name in files else None
            if shown is not None:
                streams[name], counted = shown
                sets |= counted
        return RoundObserved(streams, sets) if sets else None

    def _shown(
        self, plan: Plan, name: str, files: Sequence[str], own: StreamRound
    ) -> tuple[StreamRound, dict[SetIdentity, SetRound]] | None:
        counting = self._counting(plan, name)
        scan = counting.scan
        if scan is None or scan.local is None:
            return None
        try:
            stream = plan.stream(name)
            table, _ = timed_tuples(whole_tuples(scan, stream, units_of(scan.local, stream, files)))
            taken = take_tuples(counting.plan, scan, table, threads=1)
        except (DeclinedError, OSError, ValueError, ArithmeticError, pa.ArrowException):
            return None
        told, sets = taken.scanned[scan.number], dict[SetIdentity, SetRound]()
        for fed in scan.feeds:
            partial_set, cells = counting.plan.sets[fed.number], taken.cells.get(fed.number)
            slices = partial_set.edges.edges_per_second * own.seconds
            tuples, made, groups = (0, 0, 0) if cells is None else (int(cells.tuples.sum()), len(cells), cells.groups)
            sets[partial_set.identity] = SetRound(tuples, made, groups, made, slices)
        return replace(own, conditions=told.conditions, signatures=told.signatures), sets

    def _counting(self, plan: Plan, name: str) -> _Counting:
        sets = [each for each in plan.sets if each.stream == name and _is_counted(each)]
        cut = tuple((partial_set.number, partial_set.identity, partial_set.edges) for partial_set in sets)
        known = self._known.get(name)
        if known is None or known.cut != cut:
            known = self._known[name] = _Counting(cut, *_counting_scan(plan, sets))
        return known


def _is_counted(partial_set: PartialSet) -> bool:
    """Whether the cells that a round brings depend only on its tuples."""
    return partial_set.counted_by is None and partial_set.window.is_sliced


def _counting_scan(plan: Plan, sets: Sequence[PartialSet]) -> tuple[Plan, WovenScan | None]:
    own = {partial_set.number: replace(partial_set, components=partial_set.components[:1]) for partial_set in sets}
    counted = replace(plan, sets=tuple(own.get(each.number, each) for each in plan.sets))
    if not own:
        return counted, None
    scan = woven_scan(0, list(own.values()))
    local = local_projection(scan, plan.stream(scan.stream))
    return counted, None if isinstance(local, str) else replace(scan, local=local)
