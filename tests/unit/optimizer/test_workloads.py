"""The papers' workloads: seeded, within their bounds, skewed as they say."""

from __future__ import annotations

import numpy as np
import pytest

from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.workloads import divisors, divisors_workload, zipf_workload


def test_slides_of_source_c_divide_the_longest_and_ranges_are_whole_slides() -> None:
    windows = divisors_workload(2_000, longest_slide=360, most_overlap=7)
    slides = {window.slide_ticks // TICKS_PER_SECOND for window in windows}
    assert slides == set(divisors(360))
    assert {window.overlap for window in windows} == set(range(1, 8))


def test_slides_of_source_a_are_any_and_ranges_are_whole_units() -> None:
    windows = zipf_workload(2_000, longest_slide=500, most_overlap=4)
    assert all(1 <= window.overlap <= 4.01 for window in windows)
    assert all(window.range_ticks % 10_000 == window.slide_ticks % 10_000 == 0 for window in windows)
    assert len({window.slide_ticks for window in windows}) > 300


def test_slides_of_source_a_can_be_drawn_from_templates() -> None:
    windows = zipf_workload(2_000, longest_slide=1_000, unit=TICKS_PER_SECOND, templates=4)
    assert {window.slide_ticks // TICKS_PER_SECOND for window in windows} == {1, 10, 100, 1_000}


@pytest.mark.parametrize("make", [divisors_workload, zipf_workload])
def test_the_same_seed_gives_the_same_windows(make: object) -> None:
    assert make(50, seed=3) == make(50, seed=3) != make(50, seed=4)  # type: ignore[operator]


@pytest.mark.parametrize("make", [divisors_workload, zipf_workload])
def test_more_skew_means_longer_slides(make: object) -> None:
    means = [
        np.mean([window.slide_ticks for window in make(2_000, 1_000, 5, skew)])  # type: ignore[operator]
        for skew in (-1.0, 0.0, 1.0, 3.0)
    ]
    assert means == sorted(means)
