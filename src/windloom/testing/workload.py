"""Workloads of the papers as query texts: many windows over one stream, seeded."""

from __future__ import annotations

import random
from collections.abc import Iterator


def divisors(number: int) -> list[int]:
    """All divisors, ascending.

    >>> divisors(10)
    [1, 2, 5, 10]
    """
    return [one for one in range(1, number + 1) if number % one == 0]


def divisor_windows(
    queries: int, longest_slide: int = 1000, most_overlap: int = 50, seed: int = 1
) -> Iterator[tuple[int, int]]:
    """(range, slide) in seconds: slides from the divisors of the longest, range/slide uniform (source C, Table 4)."""
    rng = random.Random(seed)
    slides = divisors(longest_slide)
    for _ in range(queries):
        slide = rng.choice(slides)
        yield slide * rng.randint(1, most_overlap), slide


def divisor_queries(
    queries: int,
    select: str,
    stream: str,
    group_by: str = "",
    longest_slide: int = 1000,
    most_overlap: int = 50,
    seed: int = 1,
) -> Iterator[tuple[str, str]]:
    """(name, CQL text) of such queries; `select` is the list of aggregates."""
    head = f"{group_by}, {select}" if group_by else select
    tail = f" GROUP BY {group_by}" if group_by else ""
    for i, (length, slide) in enumerate(divisor_windows(queries, longest_slide, most_overlap, seed)):
        text = f"SELECT {head} FROM {stream} [RANGE {length} seconds SLIDE {slide} seconds]{tail}"
        yield f"q{i:04d}_r{length}_s{slide}", text
