"""Small charts of lines as SVG, and scales with round ticks. All text is escaped and fits into its space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, floor, isclose, isfinite, log10

from windloom.explain.picture.canvas import FAINT, PALETTE, RULE, Canvas, shown, text_width
from windloom.model.formatting import number

_TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400)
_DAY = 86_400
_SHOWN_TIMES = 7


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` stand at pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value.

        >>> Scale(1, 100, 0, 80, (), log=True).at(10)
        40.0
        """
        if self.log:
            fraction = log10(value / self.low) / log10(self.high / self.low)
        else:
            fraction = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * fraction


def linear_ticks(low: float, high: float, about: int) -> list[float]:
    """Return about `about` round values that enclose low and high.

    >>> linear_ticks(0, 97, 5), linear_ticks(3.1, 3.9, 4)
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0], [3.0, 3.2, 3.4, 3.6, 3.8, 4.0])
    """
    if isclose(low, high, rel_tol=1e-12, abs_tol=0.0) or low == high:
        room = abs(low) * 0.05 or 1.0
        low, high = low - room, high + room
    rough = (high - low) / about
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    digits = max(0, 2 - floor(log10(step)))
    return [round(index * step, digits) for index in range(first, last + 1)]


def log_ticks(low: float, high: float, about: int) -> list[float]:
    """Return round values at equal ratios that enclose low and high, both above zero; 1, 2 and 5 if tens are few.

    >>> log_ticks(3, 40_000, 6), log_ticks(60, 300, 6)
    ([1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0], [50.0, 100.0, 200.0, 500.0])
    """
    first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
    last = max(last, first + 1)
    if last - first > 2:
        step = max(1, ceil((last - first) / about))
        return [10.0**power for power in range(first, last + step, step)]
    fine = [factor * 10.0**power for power in range(first, last) for factor in (1, 2, 5)] + [10.0**last]
    start = max(i for i, tick in enumerate(fine) if tick <= low * (1 + 1e-9))
    end = min(i for i, tick in enumerate(fine) if tick >= high * (1 - 1e-9))
    return fine[start : max(end, start + 1) + 1]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Return labels with just enough digits to distinguish neighbours.

    >>> tick_labels([100_000.0, 100_000.25, 100_000.5]), tick_labels([0.0, 20.0])
    (['100,000', '100,000.25', '100,000.5'], ['0', '20'])
    """
    if max(abs(tick) for tick in ticks) >= 1e12 or len(ticks) < 2 or ticks[1] - ticks[0] < 1e-6:
        return [number(tick) for tick in ticks]
    digits = max(0, 1 - floor(log10(ticks[1] - ticks[0])))
    return [f"{tick:,.{digits}f}".rstrip("0").rstrip(".") if digits else f"{tick:,.0f}" for tick in ticks]


def time_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Return round instants (seconds since the epoch, UTC) between low and high, and their labels.

    >>> time_ticks(0, 3_600)[1]
    ['00:00', '00:10', '00:20', '00:30', '00:40', '00:50', '01:00']
    """
    step = next((seconds for seconds in _TIME_STEPS if (high - low) / seconds <= _SHOWN_TIMES), 0)
    if step == 0:
        step = _DAY * ceil((high - low) / _DAY / _SHOWN_TIMES)
    ticks = [float(index * step) for index in range(ceil(low / step), floor(high / step) + 1)]
    days = {tick // _DAY for tick in ticks}
    pattern = "%H:%M:%S" if step < 60 else "%H:%M"
    if step >= _DAY:
        pattern = "%Y-%m-%d"
    elif len(days) > 1:
        pattern = "%m-%d " + pattern
    return ticks, [datetime.fromtimestamp(tick, UTC).strftime(pattern) for tick in ticks]


_WIDTH = 680.0


@dataclass(frozen=True, slots=True)
class Series:
    """One line: x is a number or a time (drawn in UTC), in order; a y of None leaves a gap."""

    label: str
    points: Sequence[tuple[float | datetime, float | None]]


def line_chart(
    series: Sequence[Series],
    *,
    y_label: str = "",
    x_label: str = "",
    title: str = "",
    height: float = 320.0,
    log_x: bool = False,
    log_y: bool = False,
) -> str:
    """Return lines over numbers or times, each named at its end; a log axis leaves out values that are not positive."""
    canvas = Canvas()
    is_time = any(isinstance(x, datetime) for line_series in series for x, _ in line_series.points)
    lines = [_known(line_series, log_x, log_y) for line_series in series]
    known = [point for line in lines for part in line for point in part]
    if not known:
        canvas.text(_WIDTH / 2, 60, "nothing to show: no values", 13, FAINT, room=_WIDTH, anchor="middle")
        return canvas.document(_WIDTH, 110, title or "empty chart")
    names = min(180.0, max(text_width(line_series.label, 12, True) for line_series in series) + 16)
    x_scale, labels = _x_scale([x for x, _ in known], is_time, log_x, _WIDTH - names - 8)
    top, bottom = 30.0, height - (50.0 if x_label else 34.0)
    ys = [y for _, y in known]
    y_ticks = log_ticks(min(ys), max(ys), 7) if log_y else linear_ticks(min(ys), max(ys), 5)
    y_scale = Scale(y_ticks[0], y_ticks[-1], bottom, top, tuple(y_ticks), log_y)
    y_labels = [number(tick) for tick in y_ticks] if log_y else tick_labels(y_ticks)
    canvas.text(8, 16, y_label, 11, FAINT, room=_WIDTH - 16)
    canvas.text((x_scale.start + x_scale.end) / 2, height - 12, x_label, 11, FAINT, room=420, anchor="middle")
    for tick, label in zip(y_scale.ticks, y_labels, strict=True):
        y = y_scale.at(tick)
        canvas.line(x_scale.start, y, x_scale.end, y, RULE, 0.8)
        canvas.text(x_scale.start - 8, y + 4, label, 10.5, FAINT, room=x_scale.start - 12, anchor="end")
    for tick, label in zip(x_scale.ticks, labels, strict=True):
        x = x_scale.at(tick)
        canvas.line(x, bottom, x, bottom + 5, FAINT, 0.8)
        canvas.text(x, bottom + 19, label, 10.5, FAINT, room=110, anchor="middle")
    ends = []
    for index, (line_series, line) in enumerate(zip(series, lines, strict=True)):
        colour = PALETTE[index % len(PALETTE)]
        with canvas.group(line_series.label):
            for part in line:
                points = [(x_scale.at(x), y_scale.at(y)) for x, y in part]
                if len(points) == 1:
                    canvas.dot(*points[0], 2.5, colour)
                    continue
                data = "M" + "L".join(f"{shown(x)} {shown(y)}" for x, y in points)
                canvas.path(data, colour, 2, extra=' stroke-linejoin="round" stroke-linecap="round"')
        if line:
            ends.append((y_scale.at(line[-1][-1][1]), line_series.label, colour))
    for y, label, colour in _spread(ends, top, bottom):
        canvas.text(x_scale.end + 10, y + 4, label, 12, colour, room=names - 4, bold=True)
    return canvas.document(_WIDTH, height, title or "line chart")


def _known(series: Series, log_x: bool, log_y: bool) -> list[list[tuple[float, float]]]:
    """Return the unbroken parts of a line."""
    parts: list[list[tuple[float, float]]] = [[]]
    for x, y in series.points:
        if isinstance(x, datetime):  # without a zone it is read as UTC, so that the axis shows what the rows show
            place = (x if x.tzinfo else x.replace(tzinfo=UTC)).timestamp()
        else:
            place = float(x)
        if y is None or not isfinite(y) or not isfinite(place) or (log_x and place <= 0) or (log_y and y <= 0):
            parts.append([])
        else:
            parts[-1].append((place, float(y)))
    return [part for part in parts if part]


def _x_scale(xs: Sequence[float], is_time: bool, log: bool, right: float) -> tuple[Scale, list[str]]:
    low, high = min(xs), max(xs)
    if log:
        low, high = (low, high) if low < high else (low / 2, high * 2)
        inside = [tick for tick in log_ticks(low, high, 6) if low <= tick <= high]
        return Scale(low, high, 74.0, right, tuple(inside), log=True), [number(tick) for tick in inside]
    if low == high:
        low, high = low - 0.5, high + 0.5
    if is_time:
        ticks, labels = time_ticks(low, high)
    else:
        ticks = [tick for tick in linear_ticks(low, high, 6) if low <= tick <= high]
        labels = tick_labels(ticks)
    return Scale(low, high, 74.0, right, tuple(ticks)), labels


def _spread(ends: list[tuple[float, str, str]], top: float, bottom: float) -> list[tuple[float, str, str]]:
    """Return the names at the ends of lines, moved apart if they would overlap."""
    placed: list[tuple[float, str, str]] = []
    low = top
    for y, label, colour in sorted(ends):
        low = max(y, low)
        placed.append((low, label, colour))
        low += 15.0
    over = low - 15.0 - bottom
    return placed if over <= 0 else [(max(top, y - over), label, colour) for y, label, colour in placed]
