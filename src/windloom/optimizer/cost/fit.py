"""Fitting constants to measurements: the least relative error with no constant below zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np


@dataclass(frozen=True, slots=True)
class Fit:
    """Nanoseconds a unit of each term, and how far the measurements lie from what they predict."""

    nanoseconds: dict[str, float]
    deviations: tuple[float, ...]  # estimated / measured − 1

    @property
    def mean_deviation(self) -> float:
        return float(np.abs(self.deviations).mean())

    @property
    def worst_deviation(self) -> float:
        return float(np.abs(self.deviations).max())


def fit(terms: Sequence[Mapping[str, float]], seconds: Sequence[float]) -> Fit:
    """Relative errors count, so that a short measurement says as much as a long one.

    Of all subsets of terms the one that explains most wins, among those whose constants come out positive: terms are
    few, and a negative constant would make some plan cost less than nothing.

    >>> fit([{"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 2.0}], [3e-9, 7e-9]).nanoseconds
    {'a': 3.0, 'b': 2.0}
    """
    names = sorted({name for one in terms for name in one})
    measured = np.array(seconds, np.float64)
    matrix = np.array([[one.get(name, 0.0) for name in names] for one in terms]) / measured[:, None]
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    best, found = np.inf, np.zeros(len(names))
    for count in range(1, len(names) + 1):
        for chosen in combinations(range(len(names)), count):
            part = matrix[:, chosen] / scale[list(chosen)]
            solution, *_ = np.linalg.lstsq(part, np.ones(len(measured)), rcond=None)
            error = float(((part @ solution - 1) ** 2).sum())
            if (solution >= 0).all() and error < best * (1 - 1e-9):
                best, found = error, np.zeros(len(names))
                found[list(chosen)] = solution / scale[list(chosen)]
    deviations = matrix @ found - 1
    rounded = {name: float(f"{1e9 * value:.4g}") for name, value in zip(names, found, strict=True)}
    return Fit(rounded, tuple(float(one) for one in deviations))
