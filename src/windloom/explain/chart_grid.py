"""The regions of two dimensions of a chart as letters, no wider than a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windloom.explain.lines import WIDTH
from windloom.model.figures import number
from windloom.plan.adapting import AxisView, ChartView

_INDENT = 2


def grid_lines(chart: ChartView) -> Iterator[str]:
    """A row per part of the second axis, the largest on top, and below them the values at which columns begin.

    Regions have space between them if there is room. If there are more, they have none, and those that do not fit in
    a line continue below it.
    """
    across, up = chart.axes[0], chart.axes[1] if len(chart.axes) > 1 else None
    rows = range(len(up.edges) - 2, -1, -1) if up is not None else range(1)
    labels = ["" if up is None else f"{number(up.edges[row])} –" for row in rows]
    head = _INDENT + max(map(len, labels)) + 1
    columns, letter = len(across.edges) - 1, max((len(plan) for plan in chart.plans), default=1)
    is_loose = head + columns * (letter + 3) - 1 <= WIDTH
    cells = _Cells(chart, letter, is_loose, _visited(chart))
    per_band = columns if is_loose else max(1, (WIDTH - head) // cells.step)
    for first in range(0, columns, per_band):
        band = range(first, min(columns, first + per_band))
        if first:
            yield ""
        for label, row in zip(labels, rows, strict=True):
            text = cells.gap.join(cells.text(column, row) for column in band)
            yield f"{label:>{head - 1}} {text}".rstrip()
        yield " " * head + _edges(across, band, cells)
    yield " " * head + cells.legend


@dataclass(frozen=True, slots=True)
class _Cells:
    """How a region is shown: its plan takes `letter` characters."""

    chart: ChartView
    letter: int
    is_loose: bool
    visited: frozenset[tuple[int, int]]

    @property
    def gap(self) -> str:
        return " " if self.is_loose else ""

    @property
    def step(self) -> int:
        """The distance from the beginning of one region to that of the next."""
        return self.letter + 3 if self.is_loose else self.letter

    @property
    def legend(self) -> str:
        here, before = ("[ ]", "· ·") if self.is_loose else ("@", "small letters:")
        return f"{here} the next round, {before} rounds before it"

    def text(self, column: int, row: int) -> str:
        axes, plan = self.chart.axes, self.chart.regions.get((column, row), " ")
        is_next = (column, row) == (axes[0].part, axes[1].part if len(axes) > 1 else 0)
        is_visited = not is_next and (column, row) in self.visited
        if self.is_loose:
            left, right = "[]" if is_next else ("··" if is_visited else "  ")
            return f"{left}{plan}{right}".ljust(self.letter + 2)
        return ("@" if is_next else (plan.lower() if is_visited else plan)).ljust(self.letter)


def _edges(axis: AxisView, band: range, cells: _Cells) -> str:
    """The values where the first column of a band begins, where some others begin, and where the last one ends."""
    line, offset = "", int(cells.is_loose)
    last = number(axis.edges[band[-1] + 1])
    room = len(band) * cells.step - len(cells.gap)
    end = room - len(last)
    for column in (band[0], *band[:: max(1, len(band) // 2)][1:2]):
        text, place = number(axis.edges[column]), (column - band[0]) * cells.step + offset
        if not line or (place > len(line) and place + len(text) < end):
            line = line.ljust(place) + text
    return line.ljust(end) + last if len(line) < end else f"{line} … {last}"


def _visited(chart: ChartView) -> frozenset[tuple[int, int]]:
    return frozenset(
        (_part(chart.axes[0], point[0]), _part(chart.axes[1], point[1]) if len(chart.axes) > 1 else 0)
        for point in chart.path
    )


def _part(axis: AxisView, value: float) -> int:
    """The part that a value lies in, for a value between the ends."""
    return sum(1 for edge in axis.edges[1:] if value >= edge)
