"""Fits constants to measurements: the least relative error with no constant below zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Fit:
    """Nanoseconds per unit of each term, and how far their predictions lie from the measurements."""

    nanoseconds: dict[str, float]
    deviations: tuple[float, ...]  # estimated / measured − 1

    @property
    def mean_deviation(self) -> float:
        return float(np.abs(self.deviations).mean())

    @property
    def worst_deviation(self) -> float:
        return float(np.abs(self.deviations).max())


def fit(terms: Sequence[Mapping[str, float]], seconds: Sequence[float]) -> Fit:
    """The constants, none negative, that predict the measured seconds with the least squared relative error.

    Errors are relative, so that a short measurement counts as much as a long one. A negative constant would make
    some plan cost less than nothing.

    >>> fit([{"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 2.0}], [3e-9, 7e-9]).nanoseconds
    {'a': 3.0, 'b': 2.0}
    """
    from scipy.optimize import nnls  # takes 0.4 s to import, and only calibration needs it

    names = sorted({name for term in terms for name in term})
    measured = np.array(seconds, np.float64)
    matrix = np.array([[term.get(name, 0.0) for name in names] for term in terms]) / measured[:, None]
    scale = np.maximum(np.abs(matrix).max(axis=0), 1e-300)  # columns of one size, whatever their terms count
    solution, _ = nnls(matrix / scale, np.ones(len(measured)))
    found = solution / scale
    deviations = matrix @ found - 1
    rounded = {name: float(f"{1e9 * value:.4g}") for name, value in zip(names, found, strict=True)}
    return Fit(rounded, tuple(float(deviation) for deviation in deviations))
