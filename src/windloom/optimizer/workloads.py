"""The workloads of the papers, seeded: many windows over one stream."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from windloom.model.time import TICKS_PER_SECOND
from windloom.model.windows import TimeWindow, Window


def divisors(number: int) -> list[int]:
    """Return all divisors, ascending.

    >>> divisors(10)
    [1, 2, 5, 10]
    """
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def divisor_windows(
    queries: int, longest_slide: int = 1000, most_overlap: int = 50, seed: int = 1
) -> Iterator[tuple[int, int]]:
    """(range, slide) in seconds: slides from the divisors of the longest, range/slide uniform (source C, Table 4)."""
    rng = random.Random(seed)
    slides = divisors(longest_slide)
    for _ in range(queries):
        slide = rng.choice(slides)
        yield slide * rng.randint(1, most_overlap), slide


def divisors_workload(
    queries: int,
    longest_slide: int = 1000,
    most_overlap: float = 50,
    skew: float = 0.0,
    seed: int = 1,
    unit: int = TICKS_PER_SECOND,
) -> tuple[Window, ...]:
    """Source C, Table 4: slides are divisors of the longest, range/slide is whole and uniform.

    A skew above 0 prefers long slides, one below 0 short ones (Zipf over the slides by length).
    """
    rng = np.random.default_rng(seed)
    slides = _zipf(rng, np.array(divisors(longest_slide), np.int64), skew, queries)
    return _windows(slides * rng.integers(1, int(most_overlap), queries, endpoint=True), slides, unit)


def zipf_workload(
    queries: int,
    longest_slide: int = 100_000,
    most_overlap: float = 50,
    skew: float = 0.6,
    seed: int = 1,
    unit: int = TICKS_PER_SECOND // 100,
    templates: int | None = None,
) -> tuple[Window, ...]:
    """Source A, Table 1: slides Zipf over 1 … longest, long ones first; range/slide uniform, ranges in whole units.

    The paper draws from a discrete range of templates, whose number it does not state: `templates` slides at equal
    ratios, or every whole one.
    """
    rng = np.random.default_rng(seed)
    drawn = np.arange(1, longest_slide + 1) if templates is None else np.geomspace(1, longest_slide, templates).round()
    slides = _zipf(rng, np.unique(drawn.astype(np.int64)), skew, queries)
    ranges = np.rint(slides * rng.uniform(1.0, most_overlap, queries)).astype(np.int64)
    return _windows(np.maximum(ranges, slides), slides, unit)


def _zipf(rng: np.random.Generator, slides: NDArray[np.int64], skew: float, count: int) -> NDArray[np.int64]:
    """Draws among `slides`, ascending: the longest has rank 1."""
    shares = np.arange(len(slides), 0, -1, dtype=np.float64) ** -skew
    return rng.choice(slides, count, p=shares / shares.sum())


def _windows(ranges: NDArray[np.int64], slides: NDArray[np.int64], unit: int) -> tuple[Window, ...]:
    """Return the windows; equal ones are one object, because a million queries have few distinct windows."""
    both, place = np.unique(np.stack([ranges, slides]), axis=1, return_inverse=True)
    made = [TimeWindow(int(r) * unit, int(s) * unit) for r, s in both.T]
    return tuple(map(made.__getitem__, place.tolist()))
