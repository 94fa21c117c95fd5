"""Frontiers: how far the time of each stream has come, and therefore up to where windows over it are closed.

The frontier of a stream is its largest event tick so far, less its delay; it never moves backwards. A window is closed
once the least frontier of the streams that its query reads has passed its end: that least frontier is the query's
watermark. So a silent stream holds back the queries that read it, and no others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windloom.kernels.tuples.signatures import SIGNATURE_BITS
from windloom.model.arrays import Ints, Mask
from windloom.model.stream import Stream
from windloom.model.time import TICK_MAX, TICK_MIN
from windloom.plan.plan import PartialSet, Plan

#: The streams that decide when the windows of a query close, in the order in which it names them.
Inputs = tuple[str, ...]


def inputs_of(partial_set: PartialSet) -> tuple[Inputs, ...]:
    """Return inputs of all its queries, each once: a side of a join also closes with the other streams of the join."""
    return tuple(dict.fromkeys(planned.query.inputs for planned in partial_set.queries))


def all_inputs(plan: Plan) -> tuple[Inputs, ...]:
    """Return the inputs of all queries of a plan, each once."""
    of_sets = [inputs for partial_set in plan.sets for inputs in inputs_of(partial_set)]
    return tuple(dict.fromkeys([*of_sets, *(planned_rows.query.inputs for planned_rows in plan.rows)]))


def least(frontiers: Mapping[str, int], inputs: Inputs, idle: Collection[str] = ()) -> int:
    """Return the watermark of a query that reads `inputs`; a stream without a frontier has had no tuples yet.

    Idle streams do not count if others are not idle. If all are idle, the furthest one counts.

    >>> least({"a": 50, "b": 30}, ("a", "b")), least({"a": 50}, ("a", "b")) == TICK_MIN
    (30, True)
    >>> least({"a": 50, "b": 30}, ("a", "b"), {"b"}), least({"b": 30}, ("b",), {"b"})
    (50, 30)
    """
    ticks = {stream: frontiers.get(stream, TICK_MIN) for stream in inputs}
    counting = [tick for stream, tick in ticks.items() if stream not in idle]
    return min(counting) if counting else max(ticks.values())


def advanced(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return the frontiers after a round with the frontiers `after`; one that would move backwards stays where it was.

    >>> advanced({"a": 5, "b": 9}, {"b": 7, "c": 1})
    {'a': 5, 'b': 9, 'c': 1}
    """
    together = {**before, **after}
    return {stream: max(before.get(stream, tick), tick) for stream, tick in together.items()}


def ahead_of_idle(
    frontiers: Mapping[str, int], every: Iterable[Inputs], idle: Collection[str], before: Mapping[Inputs, int]
) -> dict[Inputs, int]:
    """For queries that read several streams: up to where they are closed, if that is ahead of their least frontier.

    They get there while a stream is idle, and stay there when it comes back.

    >>> ahead_of_idle({"a": 50, "b": 30}, [("a", "b"), ("a",)], {"b"}, {})
    {('a', 'b'): 50}
    >>> ahead_of_idle({"a": 60, "b": 40}, [("a", "b")], {}, {("a", "b"): 50})
    {('a', 'b'): 50}
    """
    watermarks = {inputs: max(before.get(inputs, TICK_MIN), least(frontiers, inputs, idle)) for inputs in every}
    return {inputs: tick for inputs, tick in watermarks.items() if tick > least(frontiers, inputs)}


def all_closed(streams: Iterable[Stream]) -> dict[str, int]:
    """Return the frontiers of streams that have ended: every window is closed."""
    return {stream.name: TICK_MAX for stream in streams}


@dataclass(frozen=True, slots=True)
class LateTuples:
    """Tuples behind a frontier, counted by finest slice (where it begins) and signature.

    All tuples of an entry are in the same windows of the same queries, so late tuples are counted exactly.
    """

    starts: Ints
    words: tuple[Ints, ...]
    tuples: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def holds(self, bit: int | None) -> Mask:
        """Return the entries whose tuples satisfy the predicate of a bit; all entries if `bit` is None."""
        if bit is None:
            return np.ones(len(self), np.bool_)
        return np.asarray((self.words[bit // SIGNATURE_BITS] >> (bit % SIGNATURE_BITS)) & 1, np.bool_)

    def to_table(self) -> pa.Table:
        return pa.table({str(i): column for i, column in enumerate([self.starts, self.tuples, *self.words])})

    @classmethod
    def from_table(cls, table: pa.Table) -> LateTuples:
        starts, tuples, *words = (np.array(column.to_numpy(), np.int64) for column in table.columns)
        return cls(starts, tuple(words), tuples)


@dataclass(frozen=True, slots=True)
class LateBounds:
    """The bounds that decide which tuples of a stream are late: up to where some query was closed before the round.

    `frontier` is that of the stream itself. `since` are further ticks at which slices are divided, because some windows
    distinguish late tuples there.
    """

    closed: int = TICK_MIN
    frontier: int = TICK_MIN
    since: tuple[int, ...] = ()


#: Nothing is closed yet, and so no tuple is late.
ON_TIME = LateBounds()


def count_behind(starts: Ints, words: Sequence[Ints], tuples: Ints) -> LateTuples:
    """Merge entries with equal slice and signature."""
    columns = [np.asarray(column, np.int64) for column in (starts, *words)]
    order = np.lexsort(columns)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    first = np.flatnonzero(is_new)
    total = np.add.reduceat(tuples[order], first)
    distinct = [column[order][first] for column in columns]
    return LateTuples(distinct[0], tuple(distinct[1:]), total)


def join_behind(parts: Iterable[LateTuples]) -> LateTuples:
    """Return the tuples that several parts have counted."""
    every = list(parts)
    words = [np.concatenate(each) for each in zip(*(behind.words for behind in every), strict=True)]
    starts, tuples = (
        np.concatenate(each) for each in zip(*((behind.starts, behind.tuples) for behind in every), strict=True)
    )
    return count_behind(starts, words, tuples)
