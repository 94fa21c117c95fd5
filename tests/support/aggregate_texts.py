"""Aggregates as text, over columns that a test names: those with exact answers, which every oracle has."""

from __future__ import annotations

import random


def exact_aggregates(rng: random.Random, number: str, value: str, other: str) -> list[str]:
    """One call of every kind: `number` is a numeric argument, `value` and `other` are of any type."""
    return [
        "count(*)",
        f"{rng.choice(['sum', 'avg'])}({number})",
        f"{rng.choice(['min', 'max', 'count'])}({value})",
        f"{rng.choice(['var_pop', 'var_samp', 'stddev_pop', 'stddev_samp'])}({number})",
        f"{rng.choice(['bool_and', 'bool_or'])}({rng.choice(['p', 'q', 'a > 1'])})",
        f"{rng.choice(['min_by', 'max_by'])}({value}, {other})",
        f"{rng.choice(['first', 'last'])}({value})",
        f"count(DISTINCT {value})",
        f"median({number})",
        f"quantile({number}, 0.3)",
    ]
