"""The plan-cost curve (source A, section 5.2): what full plans cost by number of queries, and what to expect next."""

from __future__ import annotations


class PlanCurve:
    """Extrapolates along the slope of the last two full plans; the first is joined to no queries at no cost.

    >>> curve = PlanCurve()
    >>> curve.add(10, 500.0)
    >>> curve.expected(12)
    600.0
    >>> curve.add(14, 580.0)
    >>> curve.expected(15)
    600.0
    """

    def __init__(self) -> None:
        self._before = (0, 0.0)
        self._last = (0, 0.0)

    def add(self, queries: int, cost: float) -> None:
        """Records the cost of a full plan of this many queries."""
        if queries != self._last[0]:
            self._before = self._last
        self._last = (queries, cost)

    def expected(self, queries: int) -> float:
        """The expected cost of a full plan of this many queries, never negative."""
        (n0, c0), (n1, c1) = self._before, self._last
        if n1 == n0:
            return c1
        return max(0.0, c1 + (c1 - c0) / (n1 - n0) * (queries - n1))
