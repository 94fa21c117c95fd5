"""Moments of one and two columns by their definition, from exact sums of powers of deviations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

#: Functions of one column, and of two.
OF_ONE = ("skewness", "kurtosis")
OF_TWO = (
    "corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_sxy", "regr_syy",
)  # fmt: skip


def shape_of(function: str, values: Sequence[float]) -> float | None:
    """Skewness and excess kurtosis; NULL of a constant, NaN of values that are not finite."""
    if not values:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    second, third, fourth = (_deviation([values] * power) for power in (2, 3, 4))
    if not second:
        return None
    if function == "kurtosis":
        return float(len(values) * fourth / (second * second) - 3)
    return math.copysign(_root(len(values) * third * third / second**3), third)


def pair_of(function: str, pairs: Sequence[tuple[float, float]]) -> float | None:
    """A statistic of pairs (y, x), or (x, y) of those that are symmetric."""
    count, ys, xs = len(pairs), [y for y, _ in pairs], [x for _, x in pairs]
    if not count or (count == 1 and function in ("corr", "covar_samp")):
        return None
    y_is_finite, x_is_finite = (all(map(math.isfinite, values)) for values in (ys, xs))
    syy = _deviation((ys, ys)) if y_is_finite else None
    sxx = _deviation((xs, xs)) if x_is_finite else None
    sxy = _deviation((ys, xs)) if y_is_finite and x_is_finite else None
    if function in ("regr_slope", "regr_intercept", "regr_r2") and sxx == 0:
        return None
    if function == "regr_r2" and syy == 0:
        return 1.0
    match function:
        case "corr":
            if syy is None or sxx is None or sxy is None:
                return math.nan
            if not syy or not sxx:
                return None
            return math.copysign(_root(sxy * sxy / (syy * sxx)), sxy)
        case "regr_r2":
            return math.nan if sxy is None or sxx is None or syy is None else float(sxy * sxy / (sxx * syy))
        case "regr_slope":
            return math.nan if sxy is None or sxx is None else float(sxy / sxx)
        case "regr_intercept":
            if sxy is None or sxx is None:
                return math.nan
            return float((_total(ys) - sxy / sxx * _total(xs)) / count)
        case "covar_pop" | "covar_samp":
            return math.nan if sxy is None else float(sxy / (count - (function == "covar_samp")))
    found = {"regr_sxx": sxx, "regr_sxy": sxy, "regr_syy": syy}[function]
    return math.nan if found is None else float(found)


def size_of(function: str, pairs: Sequence[tuple[float, float]]) -> float:
    """What an error of a statistic is relative to, if sums of products are off relative to their magnitudes."""
    pairs = [pair for pair in pairs if all(map(math.isfinite, pair))]
    if not pairs:
        return 0.0
    ys, xs = ([abs(pair[place]) for pair in pairs] for place in (0, 1))
    if function in OF_ONE:
        spread = float(_deviation([[x for _, x in pairs]] * 2)) / len(xs)
        if not spread:
            return 0.0
        power = 3 if function == "skewness" else 4
        answer = abs(shape_of(function, [x for _, x in pairs]) or 0.0) + 3
        powers = math.fsum(math.pow(x, power) for x in xs) / len(xs) / math.pow(spread, power / 2)
        return powers + 2 * answer * math.fsum(x * x for x in xs) / len(xs) / spread
    square_y, square_x = math.fsum(y * y for y in ys), math.fsum(x * x for x in xs)
    both = math.sqrt(square_y) * math.sqrt(square_x)
    syy, sxx = (float(_deviation([[pair[place] for pair in pairs]] * 2)) for place in (0, 1))
    of_corr = both / math.sqrt(syy) / math.sqrt(sxx) + square_y / syy + square_x / sxx if syy and sxx else 0.0
    slope = abs(pair_of("regr_slope", pairs) or 0.0)
    of_slope = (both + slope * square_x) / sxx if sxx else 0.0
    mean_y, mean_x = math.fsum(ys) / len(ys), math.fsum(xs) / len(xs)
    return {
        "corr": of_corr,
        "regr_r2": 2 * of_corr,
        "covar_pop": both / len(pairs),
        "covar_samp": both / max(len(pairs) - 1, 1),
        "regr_slope": of_slope,
        "regr_intercept": mean_y + 2 * of_slope * mean_x + slope * mean_x,
        "regr_sxx": square_x,
        "regr_sxy": both,
        "regr_syy": square_y,
    }[function]


def _total(values: Sequence[float]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


def _deviation(columns: Sequence[Sequence[float]]) -> Fraction:
    """The sum of products of deviations, each column's from its own mean."""
    total, means = Fraction(0), [_total(column) / len(column) for column in columns]
    for values in zip(*columns, strict=True):
        product = Fraction(1)
        for value, mean in zip(values, means, strict=True):
            product *= Fraction(value) - mean
        total += product
    return total


def _root(value: Fraction) -> float:
    return math.sqrt(float(value))
