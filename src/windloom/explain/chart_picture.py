"""A chart as a picture: two dimensions, regions coloured by plan, and the path of the last rounds."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from windloom.explain.canvas import FAINT, INK, PALETTE, PAPER, RULE, Canvas, shown, text_width
from windloom.explain.charts import candidate_text
from windloom.model.figures import count, number
from windloom.plan.adapting import AxisView, ChartView

WIDTH = 900.0
_LEFT, _TOP, _CELL, _MOST = 92.0, 74.0, 44.0, 460.0
#: Where the legend begins, right of the regions.
_GAP = 36.0


def chart_svg(charts: Sequence[ChartView]) -> str:
    """All charts of a loom, one below the other."""
    canvas, y = Canvas(), 0.0
    for chart in charts:
        y = _Drawing(canvas, chart, y).draw()
    if not charts:
        canvas.text(WIDTH / 2, 60, "no chart has been drawn yet", 13, FAINT, room=WIDTH, anchor="middle")
        y = 110.0
    return canvas.document(WIDTH, y + 12, "charts of the best plans")


class _Drawing:
    """One chart, drawn from `top` downwards."""

    def __init__(self, canvas: Canvas, chart: ChartView, top: float) -> None:
        self.canvas, self.chart, self.top = canvas, chart, top + _TOP
        self.across = chart.axes[0]
        self.down = chart.axes[1] if len(chart.axes) > 1 else None
        columns, rows = len(self.across.edges) - 1, 1 if self.down is None else len(self.down.edges) - 1
        self.columns, self.rows = columns, rows
        self.wide, self.high = min(_CELL, _MOST / columns), min(_CELL, _MOST / max(rows, 1))
        letters = list(chart.plans)
        self.colours = {letter: PALETTE[place % len(PALETTE)] for place, letter in enumerate(letters)}

    def draw(self) -> float:
        canvas, chart = self.canvas, self.chart
        title = f"Best plans for {chart.basin}"
        canvas.text(_LEFT, self.top - 46, title, 17, INK, room=WIDTH - _LEFT - 20, bold=True)
        told = f"{self.columns} × {self.rows} regions; each has the best plan for its centroid"
        canvas.text(_LEFT, self.top - 26, told, 12, FAINT, room=WIDTH - _LEFT - 20)
        self._regions()
        self._axes()
        self._path()
        below = self.top + self.rows * self.high + 58
        return max(below, self._legend())

    def _regions(self) -> None:
        for (column, row), letter in self.chart.regions.items():
            x, y = _LEFT + column * self.wide, self.top + (self.rows - 1 - row) * self.high
            with self.canvas.group(f"{letter}: {self.chart.plans[letter]}"):
                self.canvas.rect(
                    x, y, self.wide, self.high, self.colours[letter], stroke=PAPER, extra=' fill-opacity="0.32"'
                )
                if min(self.wide, self.high) >= 16:
                    size = min(13.0, 0.45 * self.high)
                    self.canvas.text(x + 6, y + size + 4, letter, size, self.colours[letter], room=self.wide, bold=True)

    def _axes(self) -> None:
        canvas, bottom = self.canvas, self.top + self.rows * self.high
        right = _LEFT + self.columns * self.wide
        canvas.line(_LEFT, bottom, right, bottom, RULE)
        for part in _labelled(self.columns):
            x = _LEFT + part * self.wide
            canvas.line(x, bottom, x, bottom + 5, FAINT, 0.8)
            canvas.text(x, bottom + 18, number(self.across.edges[part]), 10.5, FAINT, room=90, anchor="middle")
        text = self.across.figure + (f", {self.across.unit}" if self.across.unit else "")
        canvas.text((_LEFT + right) / 2, bottom + 38, text, 12, INK, room=right - _LEFT + 120, anchor="middle")
        if self.down is None:
            return
        canvas.line(_LEFT, self.top, _LEFT, bottom, RULE)
        for part in _labelled(self.rows):
            y = bottom - part * self.high
            canvas.line(_LEFT - 5, y, _LEFT, y, FAINT, 0.8)
            canvas.text(_LEFT - 9, y + 4, number(self.down.edges[part]), 10.5, FAINT, room=_LEFT - 14, anchor="end")
        text = self.down.figure + (f", {self.down.unit}" if self.down.unit else "")
        canvas.text(8, self.top - 9, f"↑ {text}", 12, INK, room=right - 8)

    def _path(self) -> None:
        """Draws the path of the last rounds: older dots are lighter, and rounds at the same place share one dot."""
        now = tuple(axis.value for axis in self.chart.axes)
        points = [self._at(point) for point in self.chart.path] or [self._at(now)]
        for place in range(1, len(points)):
            strength = 0.25 + 0.75 * place / len(points)
            (x1, y1), (x2, y2) = points[place - 1], points[place]
            self.canvas.line(x1, y1, x2, y2, INK, 1.6, extra=f' stroke-opacity="{shown(strength)}"')
        seen = set()
        for place, (x, y) in enumerate(points[:-1]):
            spot = (round(x), round(y))
            if spot not in seen:
                seen.add(spot)
                strength = 0.35 + 0.65 * (place + 1) / len(points)
                self.canvas.dot(x, y, 2.4, INK, extra=f' fill-opacity="{shown(strength)}"')
        x, y = self._at(now)
        with self.canvas.group("where the next round is expected"):
            self.canvas.dot(x, y, 7, PAPER, extra=f' stroke="{INK}" stroke-width="2"')
            self.canvas.dot(x, y, 3, INK)

    def _at(self, point: Sequence[float]) -> tuple[float, float]:
        x = _LEFT + self.columns * self.wide * _place(self.across, point[0])
        middle = 0.5 if self.down is None else _place(self.down, point[1])
        return x, self.top + self.rows * self.high * (1 - middle)

    def _legend(self) -> float:
        """Draws the plans, the candidates of the next round, and why these are the dimensions; returns its end."""
        canvas, chart = self.canvas, self.chart
        x, y = _LEFT + self.columns * self.wide + _GAP, self.top + 6
        room = WIDTH - x - 16
        for letter, text in chart.plans.items():
            canvas.rect(x, y - 9, 14, 14, self.colours[letter], radius=3, extra=' fill-opacity="0.45"')
            head = f"{letter}, in force" if letter == chart.present else letter
            canvas.text(x + 22, y + 2, head, 12.5, self.colours[letter], room=room - 22, bold=True)
            y += 17
            for line in _wrapped(text, room - 22, 11):
                canvas.text(x + 22, y, line, 11, FAINT, room=room - 22)
                y += 14
            y += 8
        facts = [candidate_text(view, place, len(chart.candidates)) for place, view in enumerate(chart.candidates[:2])]
        facts += [f"{axis.figure}: {axis.reason}" for axis in chart.axes[:2]]
        facts += [f"held at {number(axis.value)}: {axis.figure}" for axis in chart.axes[2:]]
        if chart.path:
            facts.append(f"line: the last {count(len(chart.path), 'round')}, dark are the newest; ring: the next round")
        for text in facts:
            y += 4
            for line in _wrapped(text, room, 11):
                canvas.text(x, y, line, 11, FAINT, room=room)
                y += 14
        return y + 10


def _place(axis: AxisView, value: float) -> float:
    """The place of a value between the ends, limited to them."""
    low, high = axis.edges[0], axis.edges[-1]
    fraction = log(max(value, 1e-300) / low) / log(high / low) if axis.is_geometric else (value - low) / (high - low)
    return min(1.0, max(0.0, fraction))


def _labelled(parts: int) -> list[int]:
    """The edges that have a label: no more than there is room for."""
    step = max(1, -(-parts // 5))
    return list(range(0, parts + 1, step))


def _wrapped(text: str, room: float, size: float) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and text_width(longer, size) > room:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line else lines
