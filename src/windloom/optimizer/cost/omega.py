"""Ω: final-aggregation operations at every edge of a tree, for each technique.

| technique           | Ω                                                 | source                          |
|---------------------|---------------------------------------------------|---------------------------------|
| recalculate         | Σ range/slide                                     | Weave Share, Eq. 2 (Panes)      |
| prefix_ring         | 1 + answers an edge                               | ours: one addition, then one    |
|                     |                                                   | subtraction an answer           |
| block_decomposition | log2(partials of longest range) + answers an edge | ours: one combine a level, then |
|                     |                                                   | one an answer                   |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.model.time import TICKS_PER_SECOND
from windloom.model.window import Window

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Load:
    """What Ω needs to know of the queries of one or many trees (arrays of one entry a tree)."""

    overlap: Floats  # Σ range/slide
    answers_per_second: Floats  # Σ 1/slide
    longest_seconds: Floats  # of the ranges

    @classmethod
    def of(cls, trees: Iterable[Iterable[Window]]) -> Load:
        rows = [
            (
                sum(window.overlap for window in windows),
                sum(TICKS_PER_SECOND / window.slide_ticks for window in windows),
                max(window.range_ticks for window in windows) / TICKS_PER_SECOND,
            )
            for windows in (list(tree) for tree in trees)
        ]
        columns = np.array(rows, np.float64).reshape(-1, 3).T
        return cls(columns[0].copy(), columns[1].copy(), columns[2].copy())

    def merged(self, tree: int) -> Load:
        """Each tree together with `tree`."""
        return Load(
            self.overlap + self.overlap[tree],
            self.answers_per_second + self.answers_per_second[tree],
            np.maximum(self.longest_seconds, self.longest_seconds[tree]),
        )

    def absorb(self, tree: int, other: int) -> None:
        """Make `tree` the merger of the two."""
        self.overlap[tree] += self.overlap[other]
        self.answers_per_second[tree] += self.answers_per_second[other]
        self.longest_seconds[tree] = max(self.longest_seconds[tree], self.longest_seconds[other])


def omega(techniques: Iterable[str], load: Load, edges_per_second: Floats) -> Floats:
    """Σ of Ω over the techniques a tree runs."""
    total = np.zeros_like(edges_per_second)
    answers_per_edge = load.answers_per_second / edges_per_second
    for technique in sorted(set(techniques)):
        match technique:
            case "recalculate":
                total = total + load.overlap
            case "prefix_ring":
                total = total + 1 + answers_per_edge
            case "block_decomposition":
                partials = np.maximum(2.0, load.longest_seconds * edges_per_second)
                total = total + np.log2(partials) + answers_per_edge
            case _:
                raise KeyError(technique)
    return total
