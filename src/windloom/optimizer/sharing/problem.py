"""What a sharing strategy decides on: queries as bundles of equal edges, and what trees of them cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from windloom.model.time import TICKS_PER_SECOND
from windloom.model.window import Window
from windloom.optimizer.cost.model import CostModel
from windloom.optimizer.cost.omega import Load
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.slicing.registry import Slicing

#: Panes (all of a short composite slide, or a fixed sample of a long one) on which unions of edges are counted.
COUNTED_PANES = 1 << 16

#: A partition of the queries, by position; each inner tuple is a tree.
Trees = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class SharingProblem:
    """Queries of one partial set, where they cut the stream, and what trees of them cost."""

    windows: tuple[Window, ...]
    slicing: Slicing
    model: CostModel

    @cached_property
    def bundles(self) -> tuple[tuple[int, ...], ...]:
        """Queries with the same edges, together from the start.

        No plan loses by that: in one tree they cost E·(Ω1 + Ω2) + λ, apart E·Ω1 + E·Ω2 + 2λ.
        """
        members: dict[EdgeSet, list[int]] = {}
        for index, edges in enumerate(self.edge_sets):
            members.setdefault(edges, []).append(index)
        return tuple(tuple(members[edges]) for edges in sorted(members, key=lambda edges: edges.classes))

    @cached_property
    def edge_sets(self) -> tuple[EdgeSet, ...]:
        known: dict[Window, EdgeSet] = {}
        for window in self.windows:
            if window not in known:
                known[window] = EdgeSet.of(self.slicing.edges(window))
        return tuple(known[window] for window in self.windows)

    def cost(self, trees: Trees) -> float:
        """Of a plan, in the model's unit (Weave Share, Eq. 3)."""
        return sum(self.tree_cost(tree) for tree in trees)

    def tree_cost(self, tree: Iterable[int]) -> float:
        members = list(tree)
        rate = np.array([EdgeSet.of(_classes(self.edge_sets[i] for i in members)).edges_per_second])
        return float(self.model.tree_cost(Load.of([[self.windows[i] for i in members]]), rate)[0])

    def bundle_marks(self) -> tuple[NDArray[np.uint64], float]:
        """A row of bits a bundle, one bit a counted pane, and the edges per second that one bit stands for."""
        sets = [self.edge_sets[bundle[0]] for bundle in self.bundles]
        # Not simplified: a class that another bundle covers still needs its whole period marked.
        whole = EdgeSet(tuple(sorted(_classes(sets))))
        pane = whole.pane
        every = whole.composite_slide // pane.period
        if every <= COUNTED_PANES:
            panes = np.arange(every, dtype=np.int64)
        else:
            # Always the same sample, so that all candidates are compared on the same panes.
            panes = np.random.default_rng(2_012).integers(0, 2**62 // pane.period, COUNTED_PANES, dtype=np.int64)
        marks = np.zeros((len(sets), -(-len(panes) // 64) * 64), np.bool_)
        for row, edges in enumerate(sets):
            for one in edges.classes:
                period, residue = one.period // pane.period, (one.residue - pane.residue) // pane.period
                marks[row, : len(panes)] |= (panes - residue) % period == 0
        bits = np.packbits(marks, axis=1).view(np.uint64)
        return bits, TICKS_PER_SECOND / pane.period / len(panes)


def _classes(sets: Iterable[EdgeSet]) -> set[EdgeClass]:
    return {one for edges in sets for one in edges.classes}
