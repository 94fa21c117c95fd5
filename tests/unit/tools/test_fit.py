"""Fitting constants to measurements."""

from __future__ import annotations

import numpy as np
import pytest

from windloom_tools.calibration.fit import fit


def test_constants_that_were_put_in_are_found() -> None:
    rng = np.random.default_rng(1)
    terms = [{"a": float(a), "b": float(b), "c": 1.0} for a, b in rng.integers(1, 1000, (20, 2))]
    seconds = [1e-9 * (3 * term["a"] + 0.5 * term["b"] + 40) for term in terms]
    found = fit(terms, seconds)
    assert found.nanoseconds == pytest.approx({"a": 3.0, "b": 0.5, "c": 40.0}, rel=1e-3)
    assert found.worst_deviation < 1e-6


def test_no_constant_is_negative_even_where_that_would_fit_better() -> None:
    terms = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 10.0}, {"a": 1.0, "b": 20.0}]
    found = fit(terms, [3e-9, 2e-9, 1e-9])
    assert min(found.nanoseconds.values()) >= 0
    assert found.nanoseconds["b"] == 0


def test_a_short_measurement_counts_as_much_as_a_long_one() -> None:
    terms = [{"a": 1.0}, {"a": 1.0}, {"a": 1e6}]
    found = fit(terms, [2e-9, 2e-9, 2e-3])
    assert found.nanoseconds["a"] == pytest.approx(2.0)
    assert found.mean_deviation < 1e-9


def test_a_term_that_explains_nothing_costs_nothing() -> None:
    found = fit([{"a": 1.0, "b": 0.0}, {"a": 2.0, "b": 0.0}], [3e-9, 6e-9])
    assert found.nanoseconds == {"a": 3.0, "b": 0.0}
