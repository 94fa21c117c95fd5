"""EXPLAIN ANALYZE: where the time of a run went, by stage and by what answered its queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from windloom.explain.node import Json
from windloom.explain.words import one_line, tree_name
from windloom.model.formatting import count, share
from windloom.plan.plan import Plan

#: A text shows this many parts of a plan, those that took longest.
_MOST_PARTS = 20


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """What a run has measured: seconds and those of the processor, by stage; counts by number of the set.

    The processor worked for this process, not for Spark's. `took` has the seconds of queries that are answered
    together, by the first of them; several threads answer at once.
    """

    cores: int = 1
    seconds: Mapping[str, float] = field(default_factory=dict)
    processor: Mapping[str, float] = field(default_factory=dict)
    tuples: Mapping[int, int] = field(default_factory=dict)
    cells: Mapping[int, int] = field(default_factory=dict)
    groups: Mapping[int, int] = field(default_factory=dict)
    took: Mapping[str, float] = field(default_factory=dict)

    @property
    def stages(self) -> list[Json]:
        return [
            {"stage": stage, **self._stage(seconds, self.processor.get(stage, 0.0))}
            for stage, seconds in self.seconds.items()
        ]

    @property
    def all(self) -> Json:
        return self._stage(sum(self.seconds.values()), sum(self.processor.values()))

    def _stage(self, seconds: float, processor: float) -> Json:
        idle = max(0.0, 1 - processor / (seconds * self.cores)) if seconds else 0.0
        return {"seconds": seconds, "processor": processor, "idle": idle}


def analysis(plan: Plan, measured: MeasuredRun) -> Json:
    """Return the figures of a run as data; `idle` is the share of the cores for which this process had no work."""
    parts = sorted(_parts(plan, measured), key=lambda part: -part["seconds"])
    queries = sum(1 for _ in plan.queries)
    return {"queries": queries, "cores": measured.cores, **measured.all, "stages": measured.stages, "answers": parts}


def _parts(plan: Plan, measured: MeasuredRun) -> Iterator[Json]:
    """Yield the trees of a plan, and other queries that have answers of their own."""
    left = dict(measured.took)
    for partial_set in plan.sets:
        number = partial_set.number
        read = {"tuples": measured.tuples.get(number, 0), "cells": measured.cells.get(number, 0)}
        for tree in partial_set.trees:
            names = [planned.name for planned in tree.answered]
            seconds = left.pop(names[0], 0.0) if names else 0.0
            yield {
                "part": tree_name(plan, partial_set, tree),
                "queries": names,
                **read,
                "groups": measured.groups.get(number, 0),
                "seconds": seconds,
            }
    for name, seconds in left.items():
        yield {"part": one_line(name), "queries": [name], "seconds": seconds}


def analysis_text(found: Json) -> str:
    """Return the figures of `analysis` as two tables for a terminal."""
    lines = [
        f"Run of {count(found['queries'], 'query', 'queries')}: {found['seconds']:.3f} s,"
        f" {count(found['cores'], 'core')}, {share(found['idle'])} idle",
        "",
        *stage_lines(found["stages"], found),
    ]
    parts = found["answers"]
    rows = []
    for each in parts[:_MOST_PARTS]:
        counts = (f"{each[key]:,}" if key in each else "" for key in _COUNTS)
        rows.append((each["part"], f"{len(each['queries']):,}", *counts, f"{each['seconds']:.3f}"))
    lines += ["", *_columns(("answers", "queries", *_COUNTS, "seconds"), rows)]
    if len(parts) > _MOST_PARTS:
        rest = sum(each["seconds"] for each in parts[_MOST_PARTS:])
        lines.append(f"  … and {count(len(parts) - _MOST_PARTS, 'other')}, {rest:.3f} s together")
    return "\n".join(lines) + "\n"


def stage_lines(stages: Sequence[Json], total: Json) -> list[str]:
    """Return a table of stages, whose last line is the total."""
    rows = [
        (each["stage"], f"{each['seconds']:.3f}", f"{each['processor']:.3f}", share(each["idle"]))
        for each in (*stages, {**total, "stage": "all"})
    ]
    return _columns(("stage", "seconds", "processor", "idle"), rows)


_COUNTS = ("tuples", "cells", "groups")


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines whose first column is words and whose others are numbers."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  " + "  ".join(text.rjust(width) if i else text.ljust(width) for i, (text, width) in enumerate(paired))
        for paired in (list(zip(row, widths, strict=True)) for row in (head, *rows))
    ]
