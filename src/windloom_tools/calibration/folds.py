"""Measures the time of folds: per match and value of rows, and per cell, pair, value and window of a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from windloom.answers.joins.fold import fold_sides
from windloom.answers.joins.joins import family_rows
from windloom.answers.joins.matrix_joins import MatrixFamily
from windloom.engine.registry import Registry
from windloom.model import DataType, Stream
from windloom.model.arrays import Ints
from windloom.model.time import TICK_MAX, TICK_MIN, TICKS_PER_SECOND
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.joins.cost import FoldedJoin, matrix_values, row_values
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.plan import Plan
from windloom.plan.scans import WovenScan
from windloom.state.cells import Cells
from windloom.weave.round_input import take_tuples
from windloom_tools.calibration.fit import Fit, fit
from windloom_tools.calibration.kernels import Tell, thread_seconds

_COLUMNS = {"ts": "bigint", "k": "bigint", "g": "bigint", "n": "bigint", "x": "double"}
_INTS = "count(*) AS n, sum(a.n) AS s"
_MANY = "count(*) AS n, sum(a.n * b.n) AS p, max(b.n) AS hi, sum(a.n - b.n) AS d"
_FLOATS = "sum(a.x * b.x) AS p, max(a.x) AS hi"


@dataclass(frozen=True, slots=True)
class Folding:
    """Two streams with the same number of tuples over slices of a second, joined on keys; the first is also grouped."""

    keys: int
    groups: int
    slices: int
    tuples: int
    length: int  # the length of windows, in slices
    select: str
    queries: int = 1  # each has longer windows than the one before

    @property
    def texts(self) -> dict[str, str]:
        """The queries. Without groups, there is no GROUP BY; the first stream still has the column."""
        grouped = ("a.g, ", " GROUP BY a.g") if self.groups > 1 else ("", "")
        return {
            f"q{i}": f"SELECT {grouped[0]}{self.select} FROM a [RANGE {self.length + i} seconds SLIDE 1 second]"
            f" JOIN b [RANGE {self.length} seconds] ON a.k = b.k{grouped[1]}"
            for i in range(self.queries)
        }

    def plan(self) -> Plan:
        columns = {name: DataType.parse(kind) for name, kind in _COLUMNS.items()}
        registry = Registry(_no_session)
        for name in ("a", "b"):
            registry.streams[name] = Stream(name, columns, "ts", time_unit="us")
        for name, text in self.texts.items():
            registry.add_query(name, text)
        options = PlanOptions("shared", intake="woven", fold="pairwise")
        return make_plan(registry.streams, registry.queries.values(), registry.types(), options, PlanningFacts())

    def cells(self, plan: Plan) -> dict[int, Cells]:
        found: dict[int, Cells] = {}
        for number, scan in enumerate(plan.scans):
            assert isinstance(scan, WovenScan)
            rng = np.random.default_rng(number)
            values = {
                "k": rng.integers(0, self.keys, self.tuples),
                "g": rng.integers(0, self.groups, self.tuples),
                "n": rng.integers(0, 1000, self.tuples),
                "x": np.round(rng.lognormal(4, 1, self.tuples), 2),
            }
            ticks = np.sort(rng.integers(0, self.slices * TICKS_PER_SECOND, self.tuples))
            columns = {f"x{i}": values[column.sql] for i, column in enumerate(scan.columns)}
            found |= take_tuples(plan, scan, pa.table({"tick": ticks, **columns})).cells
        return found


def _no_session() -> Any:
    raise AssertionError("calibration needs no session here")


CASES = (
    Folding(500, 4, 100, 40_000, 10, _INTS),
    Folding(500, 4, 100, 40_000, 10, _MANY),
    Folding(2_000, 1, 100, 60_000, 20, _INTS),
    Folding(20_000, 4, 60, 80_000, 10, _INTS),
    Folding(20_000, 1, 60, 80_000, 6, _MANY),
    Folding(200, 20, 100, 60_000, 5, _FLOATS),
    Folding(2_000, 4, 60, 60_000, 10, _FLOATS),
    Folding(1_000, 4, 100, 40_000, 10, _INTS, 10),
    Folding(50, 10, 400, 40_000, 8, _MANY),
    Folding(50, 2, 400, 40_000, 40, _FLOATS, 4),
)


def measure_folds(quick: bool, tell: Tell) -> dict[str, Fit]:
    """Fits of row folds and of slice matrices."""
    made = []
    for folding in CASES:
        plan = folding.plan()
        made.append((plan, folding.cells(plan)))
    terms: dict[str, list[Mapping[str, float]]] = {"folds": [], "matrices": []}
    least: dict[str, list[float]] = {name: [] for name in terms}
    for number, (plan, cells) in enumerate(made):
        tell(f"folds {number + 1} of {len(made)}")
        rows = family_rows(plan, cells, plan.joins[0], (TICK_MIN, TICK_MAX))
        by_rows = partial(_fold_rows, plan, rows)
        by_matrix = partial(_fold_cells, plan, cells)
        terms["folds"].append(_row_terms(plan, rows))
        terms["matrices"].append(_matrix_terms(plan, cells))
        for name, run in (("folds", by_rows), ("matrices", by_matrix)):
            run()  # compiles
            least[name].append(min(thread_seconds(run) for _ in range(2 if quick else 6)))
    return {name: fit(terms[name], least[name]) for name in terms}


def _fold_rows(plan: Plan, rows: list[tuple]) -> None:  # type: ignore[type-arg]
    join = plan.joins[0]
    for types, sides, ends in rows:
        fold_sides(join.join, types, sides, ends, join.order, "pairwise")


def _fold_cells(plan: Plan, cells: Mapping[int, Cells]) -> None:
    everything = [(TICK_MIN, TICK_MAX)] * len(plan.joins)
    for _ in MatrixFamily(plan, cells, plan.joins, everything).folded():
        pass


def _row_terms(plan: Plan, rows: list[tuple]) -> dict[str, float]:  # type: ignore[type-arg]
    """The terms of a row fold. Matches are rows of both sides with the same key and end."""
    matches = groups = 0.0
    join = plan.joins[0].join
    (pair,) = join.links[0].keys
    for _, sides, ends in rows:
        counted = []
        for side, place in zip(sides, (pair.parent, pair.child), strict=True):
            keys = np.repeat(side.keys[place].to_numpy(), np.diff(side.bounds))
            counted.append((keys * ends + side.ends).astype(np.int64))
            groups += len(side.bounds) - 1
        matches += _met(*counted)
    return {"fold_group": groups, "fold_row": matches, "fold_value": matches * row_values(join)}


def _met(left: Ints, right: Ints) -> float:
    """The number of pairs of equal numbers."""
    left_numbers, left_times = np.unique(left, return_counts=True)
    right_numbers, right_times = np.unique(right, return_counts=True)
    _, left_places, right_places = np.intersect1d(left_numbers, right_numbers, return_indices=True)
    return float(left_times[left_places] @ right_times[right_places])


def _matrix_terms(plan: Plan, cells: Mapping[int, Cells]) -> dict[str, float]:
    joins = [FoldedJoin.of(join, plan.sets) for join in plan.joins]
    own = [cells[place.set] for place in plan.joins[0].sides]
    lengths = [max(folded_join.join.sides[side].window.range_ticks for folded_join in joins) for side in (0, 1)]
    (pair,) = plan.joins[0].join.links[0].keys
    keys = [
        np.repeat(held.keys[place].to_numpy(), np.diff(held.group_bounds))
        for held, place in zip(own, (pair.parent, pair.child), strict=True)
    ]
    slices = [held.starts // TICKS_PER_SECOND for held in own]
    most = int(max(slice_.max() for slice_ in slices)) + 1
    pairs = 0.0
    for apart in range(-lengths[1] // TICKS_PER_SECOND + 1, lengths[0] // TICKS_PER_SECOND):
        pairs += _met(keys[0] * (4 * most) + slices[0] + apart + 2 * most, keys[1] * (4 * most) + slices[1] + 2 * most)
    groups = len(np.unique(own[0].keys[plan.joins[0].join.groups[0][1]])) if plan.joins[0].join.groups else 1
    per_window = [length / TICKS_PER_SECOND for length in lengths]
    values = matrix_values(joins, most, (per_window[0], per_window[1]))
    return {
        "matrix_cell": float(sum(map(len, own))),
        "matrix_pair": pairs * values.walks,
        "matrix_value": pairs * values.others,
        "matrix_window": values.windows * groups,
    }
