"""Charts of bars as SVG, for the demo's report and for benchmarks. All text is escaped and fits into its space."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, isfinite, log10

from windloom.explain.picture.canvas import FAINT, PALETTE, PAPER, RULE, WASH, Canvas, text_width
from windloom.explain.picture.line_charts import Scale, linear_ticks
from windloom.model.formatting import number, share

_WIDTH = 680.0
_QUIET = "#94a3b8"
#: (label, value, note): a part of a stacked bar, or a row of a bar chart.
Bar = tuple[str, float, str]


def bar_chart(rows: Sequence[Bar], unit: str, log: bool = False, *, title: str = "", highlight: int | None = 0) -> str:
    """Return bars, one per row, followed by value and note; the highlighted row has colour, the others are grey.

    With `log`, every gridline is ten times the one before, and the axis says so, because lengths are not proportional.
    """
    canvas = Canvas()
    label_width = min(220.0, max([80.0, *(text_width(label, 13) for label, _, _ in rows)]) + 16)
    value_width = 120.0
    left, right = label_width, _WIDTH - value_width
    scale = _bar_scale([value for _, value, _ in rows], log, left, right)
    row_height = 46.0 if any(note for _, _, note in rows) else 34.0
    bottom = 14.0 + row_height * len(rows)
    for tick in scale.ticks:
        x = scale.at(tick)
        canvas.line(x, 6, x, bottom, RULE, 0.8)
        canvas.text(x, bottom + 16, number(tick), 10.5, FAINT, room=80, anchor="middle")
    for index, (label, value, note) in enumerate(rows):
        y = 14.0 + row_height * index
        with canvas.group(f"{label}: {number(value)} {unit}" + (f"\n{note}" if note else "")):
            canvas.text(left - 12, y + 15, label, 13, room=label_width - 16, anchor="end", bold=index == highlight)
            end = scale.at(value) if isfinite(value) and (value > 0) else left
            colour = PALETTE[0] if highlight is None or index == highlight else _QUIET
            canvas.rect(left, y + 2, max(1.5, end - left), 18, colour, radius=3)
            figure = f"{number(value)} {unit}"
            canvas.text(max(left, end) + 8, y + 16, figure, 12.5, room=_WIDTH - end - 12, bold=True)
            if note:
                canvas.text(left, y + 35, note, 11, FAINT, room=_WIDTH - left - 8, halo=True)
    axis = f"{unit}, log scale: each line is ten times the one before" if log else unit
    canvas.text(left, bottom + 34, axis, 10.5, FAINT, room=_WIDTH - left - 8)
    return canvas.document(_WIDTH, bottom + 46, title or f"bar chart, {unit}")


def _bar_scale(values: Sequence[float], log: bool, left: float, right: float) -> Scale:
    positive = [value for value in values if isfinite(value) and value > 0] or [1.0]
    if not log:
        ticks = linear_ticks(0.0, max(positive), 5)
        return Scale(0.0, max(max(positive), ticks[-1]), left, right, tuple(ticks))
    low, high = floor(log10(min(positive))), ceil(log10(max(positive)))
    if 10.0**low == min(positive):
        low -= 1  # so that the shortest bar has a length
    high = max(high, low + 1)
    step = max(1, ceil((high - low) / 8))
    ticks = [10.0**power for power in range(low, high + 1, step)]
    return Scale(10.0**low, 10.0**high, left, right, tuple(ticks), log=True)


def stacked_bar(parts: Sequence[Bar], unit: str = "s", *, title: str = "") -> str:
    """Return a bar divided into the parts of a whole, and a legend with every value: where time went, for example."""
    canvas = Canvas()
    known = [(label, max(0.0, value) if isfinite(value) else 0.0, note) for label, value, note in parts]
    total = sum(value for _, value, _ in known)
    x, width = 8.0, _WIDTH - 16.0
    canvas.rect(x, 8, width, 40, WASH, radius=4)
    for index, (label, value, note) in enumerate(known):
        if total <= 0 or value <= 0:
            continue
        length = width * value / total
        figure = f"{number(value)} {unit}"
        with canvas.group(f"{label}: {figure}, {share(value / total)}" + (f"\n{note}" if note else "")):
            # Half a pixel of paper between parts keeps thin neighbours apart.
            canvas.rect(x, 8, max(0.6, length - 1), 40, PALETTE[index % len(PALETTE)])
            if length > text_width(figure, 12, True) + 12:
                canvas.text(x + length / 2, 33, figure, 12, PAPER, room=length - 8, anchor="middle", bold=True)
        x += length
    y = 76.0
    column = (_WIDTH - 16.0) / 2
    for index, (label, value, note) in enumerate(known):
        left = 8.0 + column * (index % 2)
        canvas.rect(left, y - 9, 11, 11, PALETTE[index % len(PALETTE)], radius=2)
        part = f", {share(value / total)}" if total > 0 else ""
        used = canvas.text(left + 18, y + 1, label, 12.5, room=column * 0.5, bold=True)
        figure = f"{number(value)} {unit}{part}" + (f" · {note}" if note else "")
        canvas.text(left + 18 + used + 10, y + 1, figure, 12, FAINT, room=column - used - 40)
        y += 22.0 if index % 2 else 0.0
    y += 22.0 if len(known) % 2 else 0.0
    return canvas.document(_WIDTH, y - 4, title or f"{number(total)} {unit} in {len(known)} parts")
