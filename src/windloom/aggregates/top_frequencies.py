"""Top frequencies: how often the most frequent values occur, in lists of bounded length (Misra and Gries)."""

from __future__ import annotations

from typing import Any

from windloom.aggregates.columns import ListRule
from windloom.aggregates.frequencies import Frequencies, check_count, items_type
from windloom.model.aggregate import MOST_ENTRIES, TOP_ERROR, Aggregate, Constant, Function

FEW = Constant(
    "k",
    True,
    "10, page",
    lambda k: f"k is {k}; a slice keeps {MOST_ENTRIES:,} values" if k > MOST_ENTRIES else check_count(k),
)


class TopFrequencies(Frequencies):
    kinds = ("top_frequencies",)
    rule = ListRule("top_frequencies", most=MOST_ENTRIES)
    functions = (Function("approx_top", kinds, items_type, constant=FEW, is_approximate=True),)

    def is_within(self, aggregate: Aggregate, truth: Any, answer: Any) -> bool:
        """Return whether counts are within the bound; `truth` is all values with counts, the most frequent first."""
        k = int(aggregate.parameters[0])
        counts = {str(item["value"]): item["count"] for item in truth}
        slack = TOP_ERROR * sum(counts.values())
        answered = {str(item["value"]): item["count"] for item in answer}
        least = min(answered.values()) if len(answered) == k else 0
        return (
            len(answered) == len(answer) <= k
            and all(counts.get(value, 0) - slack <= count <= counts.get(value, 0) for value, count in answered.items())
            and all(count <= least + slack for value, count in counts.items() if value not in answered)
        )
