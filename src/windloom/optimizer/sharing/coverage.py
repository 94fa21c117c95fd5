"""What one more edge set adds to many trees at once: a sample of its edges, and which trees have them already."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling.compiled import compiled
from windloom.model.arrays import Floats, Ints
from windloom.model.time import TICKS_PER_SECOND
from windloom.slicing.drawn import first_held, run_begins
from windloom.slicing.edges import EdgeClass

#: Edges sampled: from all classes together, and at least from each class.
SAMPLED = 2_048
SHORTEST_RUN = 16


def class_rows(classes: Collection[EdgeClass]) -> Ints:
    """Period and residue of each class."""
    return np.array([(edge_class.period, edge_class.residue) for edge_class in classes], np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class EdgeSample:
    """Runs of edges of every class; an edge weighs the edges per second it stands for."""

    periods: Ints
    residues: Ints
    begins: Ints
    lengths: Ints
    weights: Floats

    @classmethod
    def of(cls, classes: Collection[EdgeClass]) -> EdgeSample:
        """A sample of a union of classes; an edge that an earlier class has too weighs nothing."""
        ordered = sorted(classes)
        periods = np.array([edge_class.period for edge_class in ordered], np.int64)
        residues = np.array([edge_class.residue for edge_class in ordered], np.int64)
        begins = run_begins([(edge_class.period, edge_class.residue) for edge_class in ordered])
        lengths = np.full(len(ordered), max(SHORTEST_RUN, SAMPLED // len(ordered)), np.int64)
        weights = np.repeat(TICKS_PER_SECOND / periods / lengths, lengths)
        _drop_repeated(periods, residues, begins, lengths, weights)
        return cls(periods, residues, begins, lengths, weights)

    def missing(self, trees: Sequence[Ints], also: int | None = None) -> Floats:
        """Edges per second of the sample that each tree lacks; with `also`, those that both it and that tree lack.

        Trees are given as `class_rows` of their classes.
        """
        rows = np.concatenate(trees)
        tree_of = np.repeat(np.arange(len(trees)), [len(tree) for tree in trees])
        has_edge = np.zeros((len(trees), len(self.weights)), np.bool_)
        _mark(self.periods, self.residues, self.begins, self.lengths, rows, tree_of, has_edge)
        if also is not None:
            has_edge |= has_edge[also]
        return np.asarray(np.where(has_edge, 0.0, self.weights).sum(axis=1))


@compiled
def _drop_repeated(periods: Ints, residues: Ints, begins: Ints, lengths: Ints, weights: Floats) -> None:
    start = 0
    for own in range(len(periods)):
        end = start + lengths[own]
        for other in range(own):
            first, every = first_held(periods[own], residues[own], begins[own], periods[other], residues[other])
            if first >= 0:
                weights[start + first : end : every] = 0.0
        start = end


@compiled
def _mark(
    periods: Ints,
    residues: Ints,
    begins: Ints,
    lengths: Ints,
    rows: Ints,
    tree_of: Ints,
    held: NDArray[np.bool_],
) -> None:
    start = 0
    for own in range(len(periods)):
        end = start + lengths[own]
        for row in range(len(rows)):
            first, every = first_held(periods[own], residues[own], begins[own], rows[row, 0], rows[row, 1])
            if first >= 0:
                held[tree_of[row], start + first : end : every] = True
        start = end
