"""Edge counting: one interface, three methods, chosen by size.

| method   | counts                                              | chosen                                            |
|----------|-----------------------------------------------------|---------------------------------------------------|
| algebra  | inclusion and exclusion on residue classes; exact   | up to 12 bundles                                  |
| bit set  | all edges of one composite slide; exact             | else, where it has at most 4 million panes        |
| drawn    | edges drawn from every bundle; always the same ones | else                                              |
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling import compiled
from windloom.model.arrays import Floats, Ints
from windloom.model.time import TICKS_PER_SECOND
from windloom.slicing.density import first_held, holders, run_begins
from windloom.slicing.edges import TABLE_SETS, EdgeClass, EdgeSet, union_table

# Edge counting on marks: weighted positions that stand for edges, listed for every bundle.
#
# Where the composite slide is short, the marks are all of its edges, and counts are exact: the bit set of the Weave
# Share paper, kept sparse. Where it is too long to enumerate, edges are drawn from every bundle, as many from a rare
# bundle as from a frequent one, and weighted by how often they could have been drawn; all candidates are judged on the
# same marks. The lists are probed against one bit set, that of the tree in question.

Places = NDArray[np.int32]

#: Composite slides up to this many panes are marked completely, while all marks together stay below MOST_MARKS.
WHOLE_PANES = 1 << 22
MOST_MARKS = 1 << 23
#: Edges drawn from all bundles together, and the least and greatest number from one.
DRAWN_MARKS = 1 << 18
FEWEST_DRAWN, MOST_DRAWN = 64, 1_024


@dataclass(frozen=True)
class Marks:
    """Bundle i has the marks `places[bounds[i]:bounds[i + 1]]`.

    Its edge rate is the sum of their weights times `scale`, plus `rest[i]`: what the drawn marks miss of the rate of
    the bundle alone, which is known.
    """

    weights: Floats
    places: Places
    bounds: Ints
    scale: float
    rest: Floats
    exact: bool

    def forest(self, trees: Sequence[Sequence[int]]) -> MarkedForest:
        return MarkedForest(self, trees)

    def rates(self, trees: Sequence[Sequence[int]]) -> Floats:
        """Return edges per second of each tree."""
        return self.forest(trees).rates

    def toggled(self, tree: Sequence[int]) -> tuple[float, Floats]:
        """Return edges per second of the tree; and of the tree with each bundle it lacks, and without each it has."""
        has = np.zeros(len(self.rest), np.bool_)
        has[list(tree)] = True
        added, whole = _toggle(has, self.places, self.bounds, self.weights)
        rest = self.rest[has].sum()
        toggled = (whole + added) * self.scale + np.where(has, -self.rest, self.rest) + rest
        return whole * self.scale + rest, np.asarray(toggled)


class MarkedForest:
    """Trees of bundles while they are merged; each has a list of its marks in one pool."""

    def __init__(self, marks: Marks, trees: Sequence[Sequence[int]]) -> None:
        self._marks = marks
        self._bits = np.zeros(len(marks.weights) // 64 + 1, np.uint64)
        lists = []
        for tree in trees:
            first, *others = (marks.places[marks.bounds[bundle] : marks.bounds[bundle + 1]] for bundle in tree)
            lists.append(reduce(lambda united, values: _unite(united, values, self._bits), others, first))
        self._lengths = np.array([len(values) for values in lists], np.int64)
        self._begins = np.cumsum(self._lengths) - self._lengths
        self._used = int(self._lengths.sum())
        self._pool = np.zeros(2 * self._used + 1, np.int32)
        self._pool[: self._used] = np.concatenate(lists)
        self._weights = np.array([marks.weights[values].sum() for values in lists])
        self._rest = np.array([marks.rest[list(tree)].sum() for tree in trees])

    @property
    def rates(self) -> Floats:
        """Edges per second of each tree; meaningless for a tree that was merged into another."""
        return np.asarray(self._weights * self._marks.scale + self._rest)

    def unions(self, tree: int) -> Floats:
        """Return edges per second of `tree` together with each tree."""
        common = _common(tree, self._pool, self._begins, self._lengths, self._bits, self._marks.weights)
        rates = self.rates
        both = (self._weights + self._weights[tree] - common) * self._marks.scale + self._rest + self._rest[tree]
        # What a drawn estimate misses must not make a union smaller than its parts.
        return np.asarray(both if self._marks.exact else np.maximum(both, np.maximum(rates, rates[tree])))

    def merge(self, left: int, right: int) -> None:
        """Makes `left` the union of the two and `right` empty."""
        united = _unite(self._list(left), self._list(right), self._bits)
        self._lengths[left] = self._lengths[right] = 0
        if self._used + len(united) > len(self._pool):
            compacted = np.zeros_like(self._pool)
            at = 0
            for tree in np.nonzero(self._lengths)[0]:
                marks = self._list(int(tree))
                compacted[at : at + len(marks)] = marks
                self._begins[tree] = at
                at += len(marks)
            self._pool, self._used = compacted, at
        self._begins[left], self._lengths[left] = self._used, len(united)
        self._pool[self._used : self._used + len(united)] = united
        self._used += len(united)
        self._weights[left], self._weights[right] = self._marks.weights[united].sum(), 0.0
        self._rest[left] += self._rest[right]
        self._rest[right] = 0.0

    def _list(self, tree: int) -> Places:
        return self._pool[self._begins[tree] : self._begins[tree] + self._lengths[tree]]


def whole_marks(sets: Sequence[EdgeSet]) -> Marks | None:
    """Return every edge of one composite slide, or None if that is too long."""
    whole = EdgeSet(tuple(sorted({edge_class for edges in sets for edge_class in edges.classes})))
    pane = whole.pane
    every = whole.composite_slide // pane.period
    if every > WHOLE_PANES:
        return None
    if sum(every * pane.period // edge_class.period for edges in sets for edge_class in edges.classes) > MOST_MARKS:
        return None
    lists = []
    for edges in sets:
        runs = [
            np.arange((edge_class.residue - pane.residue) // pane.period % (edge_class.period // pane.period), every,
                      edge_class.period // pane.period, dtype=np.int32)
            for edge_class in edges.classes
        ]  # fmt: skip
        lists.append(np.concatenate(runs))  # classes of one bundle never meet
    bounds = np.concatenate([[0], np.cumsum([len(values) for values in lists])]).astype(np.int64)
    scale = TICKS_PER_SECOND / pane.period / every
    return Marks(np.ones(every), np.concatenate(lists), bounds, scale, np.zeros(len(sets)), True)


def drawn_marks(sets: Sequence[EdgeSet]) -> Marks:
    """Return edges drawn from every bundle, weighted by the balance heuristic: 1 / (expected draws of this edge)."""
    each = int(np.clip(DRAWN_MARKS // len(sets), FEWEST_DRAWN, MOST_DRAWN))
    classes = [(edge_class.period, edge_class.residue) for edges in sets for edge_class in edges.classes]
    owner = np.repeat(np.arange(len(sets)), [len(edges.classes) for edges in sets])
    periods, residues = (np.array(column, np.int64) for column in zip(*classes, strict=True))
    known = np.bincount(owner, 1.0 / periods, len(sets))
    lengths = np.maximum(1, each / periods / known[owner]).astype(np.int64)
    drawn = np.bincount(owner, lengths, len(sets))
    holding, places = holders(periods, residues, run_begins(classes), lengths)
    bundle = owner[holding]
    weights = 1.0 / np.bincount(places, (drawn / known)[bundle], int(lengths.sum()))
    order = np.lexsort((places, bundle))
    bundle, places = bundle[order], places[order].astype(np.int32)
    bounds = np.searchsorted(bundle, np.arange(len(sets) + 1)).astype(np.int64)
    rest = (known - np.bincount(bundle, weights[places], len(sets))) * TICKS_PER_SECOND
    return Marks(weights, places, bounds, float(TICKS_PER_SECOND), np.asarray(rest, np.float64), False)


@compiled
def _common(tree: int, pool: Places, begins: Ints, lengths: Ints, bits: NDArray[np.uint64], weights: Floats) -> Floats:
    """Return the weight of the marks that `tree` has in common with each tree."""
    bit = np.uint64(1)
    own = pool[begins[tree] : begins[tree] + lengths[tree]]
    for place in own:
        bits[place >> 6] |= bit << np.uint64(place & 63)
    weight_of = np.zeros(len(begins))
    for other in range(len(begins)):
        total = 0.0
        for at in range(begins[other], begins[other] + lengths[other]):
            place = pool[at]
            if bits[place >> 6] >> np.uint64(place & 63) & bit:
                total += weights[place]
        weight_of[other] = total
    for place in own:
        bits[place >> 6] = np.uint64(0)
    return weight_of


@compiled
def _unite(left: Places, right: Places, bits: NDArray[np.uint64]) -> Places:
    """Return the marks of both, the left ones first."""
    bit = np.uint64(1)
    for place in left:
        bits[place >> 6] |= bit << np.uint64(place & 63)
    united, count = np.empty(len(left) + len(right), np.int32), len(left)
    united[:count] = left
    for place in right:
        if not bits[place >> 6] >> np.uint64(place & 63) & bit:
            united[count] = place
            count += 1
    for place in left:
        bits[place >> 6] = np.uint64(0)
    return united[:count].copy()


@compiled
def _toggle(has: NDArray[np.bool_], places: Places, bounds: Ints, weights: Floats) -> tuple[Floats, float]:
    """Return how much each bundle adds to the weight of the marked tree, or takes from it, and that weight."""
    held = np.zeros(len(weights), np.int32)
    whole = 0.0
    for bundle in range(len(has)):
        if has[bundle]:
            for place in places[bounds[bundle] : bounds[bundle + 1]]:
                if held[place] == 0:
                    whole += weights[place]
                held[place] += 1
    changes = np.zeros(len(has))
    for bundle in range(len(has)):
        total = 0.0
        wanted = 1 if has[bundle] else 0
        for place in places[bounds[bundle] : bounds[bundle + 1]]:
            if held[place] == wanted:
                total += weights[place]
        changes[bundle] = -total if has[bundle] else total
    return changes, whole


class EdgeTable:
    """Unions of all subsets, by algebra."""

    exact = True

    def __init__(self, sets: Sequence[EdgeSet]) -> None:
        self.unions = union_table(sets) * TICKS_PER_SECOND
        self._bits = 1 << np.arange(len(sets), dtype=np.int64)

    def places(self, trees: Sequence[Sequence[int]]) -> NDArray[np.int64]:
        return np.array([self._bits[list(tree)].sum() for tree in trees], np.int64)

    def forest(self, trees: Sequence[Sequence[int]]) -> TableForest:
        return TableForest(self.unions, self.places(trees))

    def rates(self, trees: Sequence[Sequence[int]]) -> Floats:
        return np.asarray(self.unions[self.places(trees)])

    def toggled(self, tree: Sequence[int]) -> tuple[float, Floats]:
        subset = self.places([tree])[0]
        return float(self.unions[subset]), np.asarray(self.unions[subset ^ self._bits])


class TableForest:
    def __init__(self, unions: Floats, places: NDArray[np.int64]) -> None:
        self._unions, self._places = unions, places

    @property
    def rates(self) -> Floats:
        return np.asarray(self._unions[self._places])

    def unions(self, tree: int) -> Floats:
        return np.asarray(self._unions[self._places | self._places[tree]])

    def merge(self, left: int, right: int) -> None:
        self._places[left] |= self._places[right]


#: Trees while they are merged: `rates`, `unions` with one of them, and `merge`.
Forest = MarkedForest | TableForest
#: Edges per second of trees of bundles: `forest`, `rates`, `toggled`, and whether they are `exact`.
EdgeCounter = Marks | EdgeTable


def choose_counter(sets: Sequence[EdgeSet]) -> EdgeCounter:
    """Return the quickest exact method, or else the drawn one."""
    if len(sets) <= TABLE_SETS:
        return EdgeTable(sets)
    marks = whole_marks(sets)
    return drawn_marks(sets) if marks is None else marks


# What one more edge set adds to many trees at once: a sample of its edges, and which trees have them already.

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
        """Return a sample of a union of classes; an edge that an earlier class has too weighs nothing."""
        ordered = sorted(classes)
        periods = np.array([edge_class.period for edge_class in ordered], np.int64)
        residues = np.array([edge_class.residue for edge_class in ordered], np.int64)
        begins = run_begins([(edge_class.period, edge_class.residue) for edge_class in ordered])
        lengths = np.full(len(ordered), max(SHORTEST_RUN, SAMPLED // len(ordered)), np.int64)
        weights = np.repeat(TICKS_PER_SECOND / periods / lengths, lengths)
        _drop_repeated(periods, residues, begins, lengths, weights)
        return cls(periods, residues, begins, lengths, weights)

    def missing(self, trees: Sequence[Ints], also: int | None = None) -> Floats:
        """Return edges per second of the sample that each tree lacks; with `also`, that both it and that tree lack.

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
