"""Ω of every technique, against the figures of table 3 worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from windloom.kernels.families import FAMILIES
from windloom.kernels.techniques.registry import TECHNIQUES, permits
from windloom.model import TimeWindow
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.cost import papers as module
from windloom.optimizer.cost.papers import Load, cost_name, omega

SECOND = TICKS_PER_SECOND
WINDOWS = [TimeWindow(8 * SECOND, SECOND), TimeWindow(16 * SECOND, SECOND), TimeWindow(16 * SECOND, 2 * SECOND)]


def omega_of(name: str, edges_per_second: float = 1.0) -> float:
    return float(omega([name], Load.of([WINDOWS]), np.array([edges_per_second]))[0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recalculate", 8 + 16 + 8),
        ("flat_fat", (2 + 7 / 8) + 2 * (3 + 15 / 16)),
        ("b_int", (2 + 7 / 8) + 2 * (3 + 15 / 16)),
        ("flat_fit", 9),
        ("slick_deque_inv", 4),
        ("slick_deque_non_inv", 2 - 2 / 16 + 3 + 1.718281828),
        ("subtract_on_evict", 6),
        ("two_stacks", 6 + 2.5),
        ("daba", 12 + 2.5),
        ("prefix_ring", 1 + 2.5),
        ("block_decomposition", 4 + 2.5),
    ],
)
def test_omega_is_what_the_table_says(name: str, expected: float) -> None:
    assert omega_of(name) == pytest.approx(expected)


def test_every_technique_has_an_omega_for_every_family_it_answers() -> None:
    for name, technique in TECHNIQUES.items():
        for family in FAMILIES.values():
            if permits(technique, family):
                assert omega_of(cost_name(name, family)) > 0


def test_merging_trees_one_by_one_gives_the_load_of_all() -> None:
    load = Load.of([[window] for window in WINDOWS])
    whole = Load.of([WINDOWS])
    rate = np.array([1.0])
    load.absorb(0, 1)
    for name in ("flat_fat", "flat_fit", "slick_deque_inv", "slick_deque_non_inv", "two_stacks"):
        merged = omega([name], load.merged(2).changed(lambda column: column[:1]), rate)
        assert merged == pytest.approx(omega([name], whole, rate))


def test_many_ranges_are_summed_by_the_quick_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = omega_of("flat_fat")
    monkeypatch.setattr(module, "EXACT_PAIRS", 0)
    assert omega_of("flat_fat") == pytest.approx(exact, rel=0.5)
