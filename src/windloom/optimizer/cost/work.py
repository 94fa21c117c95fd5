"""Work: the amounts of work that queries of a tree cause, and the terms that make up the time of each technique.

Compiled code handles windows that move evenly (each by as many cells as the one before) many at a time. So every
technique has two sets of constants: for windows that move evenly, and for those that do not because some slices are
empty. Slices that are all full but of unequal length move windows evenly enough; only finding the windows takes longer.

Ω counts operations, but reading cells, sorting answers and jumping through memory take time too. So a technique has
a few terms, quantities that follow from its algorithm, and a constant in nanoseconds for each of them, which
`windloom calibrate` measures.

| technique            | terms                                                                       |
|----------------------|-----------------------------------------------------------------------------|
| recalculate          | cells covered by answers; answers                                           |
| prefix_ring          | cells; answers                                                              |
| block_decomposition  | few queries: cells per query; answers. Many: cells · log2(longest); answers |
| subtract_on_evict, two_stacks, daba, slick_deque_inv, running_counts | cells per query; answers   |
| slick_deque_non_inv  | cells; answers; for several queries more of both, as answers are sorted, and |
|                      | jumps between answers that are far apart                                    |
| flat_fit             | the same                                                                    |
| flat_fat             | cells · log2(longest); answers · log2(cells covered); answers that are sorted |
| b_int                | cells; answers · log2(cells covered); answers                               |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from windloom.model.arrays import Floats
from windloom.model.time import TICKS_PER_SECOND
from windloom.model.windows import Window
from windloom.optimizer.cost.papers import Load
from windloom.slicing.edges import EdgeSet
from windloom.statistics.set_statistics import Statistics

#: Rows (times, positions, values: about 40 bytes) that fit into a second-level cache; rows of a block (see `rounds`).
CACHED_ROWS = 1 << 15
BLOCK_ROWS = 1 << 20
#: Neighbouring slices that must all hold a tuple for a window to move evenly.
EVEN_CELLS = 8

Terms = dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Demand:
    """What the queries of trees ask for, independent of their slices: arrays with one entry per tree."""

    queries: Floats
    rows: Floats  # answers per second, over all groups
    overlap: Floats  # Σ range/slide: windows that a cell lies in
    longest_seconds: Floats
    log_rows: Floats  # Σ over those answers of log2 of the seconds that one covers

    @classmethod
    def of(cls, trees: Iterable[Iterable[Window]], statistics: Statistics) -> Demand:
        """Return the demand of each tree; one without windows asks for nothing."""
        totals = []
        for tree in trees:
            ticks = np.array([(window.range_ticks, window.slide_ticks) for window in tree], np.float64).reshape(-1, 2)
            ranges, slides = ticks[:, 0] / TICKS_PER_SECOND, ticks[:, 1] / TICKS_PER_SECOND
            more = statistics.windows_past_ends(ranges)
            # Empty windows have no answer.
            rows = statistics.groups * (1 + more) / slides
            rows = rows * -np.expm1(-ranges * statistics.events_per_second / statistics.groups)
            logs = np.log2(ranges / (1 + more))
            overlap = (ranges / slides).sum()
            totals.append((len(ticks), rows.sum(), overlap, ranges.max(initial=0.0), (rows * logs).sum()))
        return cls(*np.array(totals, np.float64).reshape(-1, 5).T.copy())

    @classmethod
    def of_load(cls, load: Load, statistics: Statistics, answered: float) -> Demand:
        """Return an approximation from what a sharing strategy knows of its trees.

        `answered` is the share of windows that hold something, over all queries together, so that the answers of all
        trees have the same sum in every plan.
        """
        rows = statistics.groups * (load.answers_per_second + statistics.windows_past_ends(load.overlap)) * answered
        logs = rows * load.log_seconds / np.maximum(load.queries, 1.0)  # strategies also ask about empty trees
        return cls(load.queries, rows, load.overlap, load.longest_seconds, logs)


@dataclass(frozen=True, slots=True)
class Work:
    """Work per second of event time, over all groups: arrays with one entry per tree."""

    queries: Floats
    cells: Floats  # cells read; in a stream, every round also reads those that earlier ones have left
    rows: Floats  # answers
    covered: Floats  # cells covered, Σ over answers
    doublings: Floats  # log2 of the cells covered, at least 1, Σ over answers
    longest: Floats  # cells of the longest window
    group_cells: Floats  # cells of one group in one round
    group_rows: Floats  # answers of one group in one round
    uneven: Floats  # share of answers whose windows move unevenly, because some slices are empty
    unequal: Floats  # share of answers where slices are full but of unequal length

    @classmethod
    def of(
        cls, demand: Demand, edges_per_second: Floats, statistics: Statistics, regular: Floats | float = 1.0
    ) -> Work:
        """Return the work that a demand causes; `regular` is 1 for trees whose edges are evenly spaced, else 0."""
        cells = statistics.cells_per_second(edges_per_second)
        in_group = np.maximum(cells / statistics.groups, 1e-300)
        even = statistics.filled(edges_per_second) ** EVEN_CELLS
        at_once = statistics.round_seconds + statistics.kept_seconds
        return cls(
            demand.queries,
            cells * statistics.readings,
            demand.rows,
            cells * demand.overlap,
            np.maximum(demand.rows, demand.log_rows + demand.rows * np.log2(in_group)),
            np.maximum(1.0, np.minimum(demand.longest_seconds, at_once) * in_group),
            np.maximum(1.0, in_group * at_once),
            np.maximum(1.0, demand.rows / statistics.groups * statistics.round_seconds),
            1 - even,
            even * (1 - regular),
        )

    def share(self, of_queries: float) -> Work:
        """Return the work for only a share of the queries."""
        if of_queries == 1.0:
            return self
        scaled = {
            name: getattr(self, name) * of_queries for name in ("queries", "rows", "covered", "doublings", "group_rows")
        }
        return replace(self, **scaled | {"queries": np.maximum(1.0, scaled["queries"])})


def evenly_spaced(edges: Sequence[EdgeSet]) -> Floats:
    """1 for edges at equal distances, else 0."""
    return np.array([float(each.density.value * each.pane.period == 1) for each in edges])


def _per_query(work: Work) -> Terms:
    return {"cell_query": work.cells * work.queries, "row": work.rows}


def _blocks(work: Work) -> Terms:
    few = 2 * work.queries <= np.floor(np.log2(np.maximum(work.group_cells - 1, 1))) + 1
    return {
        "cell_query": np.where(few, work.cells * work.queries, 0.0),
        "row": np.where(few, work.rows, 0.0),
        "level": np.where(few, 0.0, work.cells * np.log2(np.maximum(work.longest, 2.0))),
        "row_of_many": np.where(few, 0.0, work.rows),
    }


def _sorting(work: Work) -> Terms:
    several = work.queries > 1
    # The doublings of a group's rows beyond those that stay in the cache during jumps. A block holds no more than a
    # million rows, so the number stops growing there.
    return {
        "cell": work.cells,
        "row": work.rows,
        "cell_of_many": np.where(several, work.cells, 0.0),
        "row_of_many": np.where(several, work.rows, 0.0),
        "row_far": np.where(
            several,
            work.rows
            * np.clip(np.log2(np.maximum(work.group_rows, 1.0) / CACHED_ROWS), 0.0, np.log2(BLOCK_ROWS / CACHED_ROWS)),
            0.0,
        ),
    }


def _tree(work: Work) -> Terms:
    return {
        "level": work.cells * np.log2(np.maximum(work.longest, 2.0)),
        "doubling": work.doublings,
        "row": work.rows,
        "row_of_many": np.where(work.queries > 1, work.rows, 0.0),
    }


#: The terms of each technique, by its `cost_name`.
TERMS: dict[str, Callable[[Work], Terms]] = {
    "recalculate": lambda work: {"covered": work.covered, "row": work.rows},
    "prefix_ring": lambda work: {"cell": work.cells, "row": work.rows},
    "block_decomposition": _blocks,
    "running_counts": _per_query,
    "subtract_on_evict": _per_query,
    "slick_deque_inv": _per_query,
    "two_stacks": _per_query,
    "daba": _per_query,
    "slick_deque_non_inv": _sorting,
    "flat_fit": _sorting,
    "flat_fat": _tree,
    "b_int": lambda work: {"cell": work.cells, "doubling": work.doublings, "row": work.rows},
}
