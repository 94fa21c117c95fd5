"""Charts of the best plans, as text, as JSON and as a picture; and how a running loom follows its data."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from windloom.explain.picture.canvas import FAINT, INK, PALETTE, PAPER, RULE, Canvas, shown, text_width
from windloom.explain.picture.line_charts import Scale
from windloom.explain.words import WIDTH, labelled, listing, one_line, shorten, wrapped
from windloom.model.formatting import count, number, share
from windloom.plan.adapting import AdaptView, AxisView, CandidateView, ChartView

#: The number of rounds whose prediction is compared with the seconds they took.
_COMPARED = 12


def adapt_lines(view: AdaptView) -> Iterator[str]:
    """Yield how a running loom follows its data."""
    counted = f"{count(view.moves, 'move')}, {count(view.switches, 'switch', 'switches')}"
    yield f"Adapting: plans for {view.objective}; {counted}"
    fidelity = "no round has been judged yet"
    if view.judged:
        hits, same = share(view.hits / view.judged), share(view.same / view.judged)
        fidelity = f"{hits} of {count(view.judged, 'judged round')} had a plan as good as the best"
        fidelity += f", {same} the very best; {number(view.regret)} s lost in all"
    yield from labelled("fidelity", fidelity)
    recent = ((each.predicted, each.seconds) for each in view.recent)
    known = [(predicted, seconds) for predicted, seconds in recent if predicted is not None and seconds > 0]
    predicted_text = "no round has been predicted yet"
    if known := known[-_COMPARED:]:
        off = sorted(abs(predicted / seconds - 1) for predicted, seconds in known)
        last = f"the last round {number(known[-1][0])} s predicted, {number(known[-1][1])} s taken"
        predicted_text = f"{last}; off by {share(off[len(off) // 2])} (median of {count(len(off), 'round')})"
    yield from labelled("predicted", predicted_text)
    if view.rounds:
        lines = []
        for name, (constant, factor) in view.learned.items():
            start = f"{number(1e3 * constant)} ms + " if constant >= 5e-4 else ""
            lines.append(f"{name} {start}× {number(factor)}")
        rest = f", and {number(1e3 * view.rest)} ms for logs and commits"
        learned = f"from {count(view.rounds, 'round')}, of the model's seconds: {', '.join(lines)}{rest}"
        yield from labelled("learned", learned)
    if view.damaged:
        yield from labelled("damaged", damaged_text(view.damaged))
    if view.failure:
        yield from labelled("stopped", f"plans are no longer made, and the present one stays: {one_line(view.failure)}")
    for chart in view.charts:
        yield ""
        yield from chart_lines(chart)
    if not view.charts:
        yield from labelled("plans", "none yet: they are compared after the first round")


def damaged_text(files: Sequence[str]) -> str:
    """Return the statistics that are missing from estimates, and what to do about it."""
    names = listing([f"'{name}'" for name in files], 4)
    return f"{names}: damaged, so estimates are made without what these rounds observed; delete them, or restore copies"


def chart_lines(chart: ChartView) -> Iterator[str]:
    """Yield a chart with the plans of its regions, the candidates for the next round, and the path of the last ones."""
    sizes = " × ".join(str(len(axis.edges) - 1) for axis in chart.axes)
    way = "geometric" if all(axis.is_geometric for axis in chart.axes) else "regular"
    title = f"Chart of {one_line(chart.basin)}: {sizes} regions, {way} parts"
    yield shorten(title if chart.axes else f"Plans of {one_line(chart.basin)}", WIDTH)
    for name, axis in zip(("across", "up", *("held",) * len(chart.axes)), chart.axes, strict=False):
        ends = f"{number(axis.edges[0])} to {number(axis.edges[-1])}" + (f" {axis.unit}" if axis.unit else "")
        yield from labelled(name, f"{one_line(axis.figure)}, {ends}, now {number(axis.value)}: {axis.reason}")
    if chart.regions:
        yield from ("", *grid_lines(chart), "")
    label = "plans"
    for letter, text in chart.plans.items():
        in_force = " (in force)" if letter == chart.present else ""
        yield from wrapped(f"{letter}{in_force}: {one_line(text)}", f"  {label:12}  ", " " * 16)
        label = ""
    for place, view in enumerate(chart.candidates):
        yield from labelled("" if place else "candidates", candidate_text(view, place, len(chart.candidates)))
    if chart.path:
        ends_of = zip(chart.axes, chart.path[0], chart.path[-1], strict=False)
        moved = [f"{one_line(axis.figure)} {number(first)} → {number(last)}" for axis, first, last in ends_of]
        yield from labelled("path", f"{count(len(chart.path), 'round')}: {', '.join(moved)}")


def candidate_text(view: CandidateView, place: int, of: int) -> str:
    """Return the two terms of a candidate's utility, which is least for the best."""
    role = "best" if place == 0 else ("runner-up" if place == 1 else f"{place + 1} of {of}")
    return (
        f"{view.plan}, {role}: {number(1e3 * view.seconds)} ms and {number(view.nbytes / 2**20)} MiB per round;"
        f" utility {view.utility:.3f} = {view.latency:.3f} for latency + {view.memory:.3f} for memory"
    )


def charts_text(charts: tuple[ChartView, ...]) -> str:
    return "\n\n".join("\n".join(chart_lines(chart)) for chart in charts) + "\n"


def chart_json(chart: ChartView) -> dict[str, Any]:
    regions = [[*place, letter] for place, letter in chart.regions.items()]
    return {**asdict(chart), "regions": regions, "path": [list(point) for point in chart.path]}


#: The second axis of a chart with one dimension, which is drawn as one row; and both of one without dimensions.
_ONE_ROW = AxisView("", "", (0.0, 1.0), False, 0.5, 0, "")
_INDENT = 2


def grid_lines(chart: ChartView) -> Iterator[str]:
    """Yield a row per part of the second axis, the largest on top, and below them the values at which columns begin.

    Regions have space between them if there is room. If there are more, they have none, and those that do not fit in
    a line continue below it.
    """
    across, up = (*chart.axes, _ONE_ROW, _ONE_ROW)[:2]
    labels = [f"{number(edge)} –" for edge in up.edges[:-1]] if up is not _ONE_ROW else [""]
    head = _INDENT + max(map(len, labels)) + 1
    columns, letter = len(across.edges) - 1, max((len(plan) for plan in chart.plans), default=1)
    is_loose = head + columns * (letter + 3) - 1 <= WIDTH
    step = letter + 3 if is_loose else letter
    # The parts that values between the ends of their axes lie in.
    points = ((*point, up.value, up.value)[:2] for point in chart.path)
    visited = {(bisect_right(across.edges[1:], x), bisect_right(up.edges[1:], y)) for x, y in points}

    def region(column: int, row: int) -> str:
        plan = chart.regions.get((column, row), " ")
        is_next = (column, row) == (across.part, up.part)
        is_visited = not is_next and (column, row) in visited
        if is_loose:
            left, right = "[]" if is_next else ("··" if is_visited else "  ")
            return f"{left}{plan}{right}".ljust(step)
        return ("@" if is_next else (plan.lower() if is_visited else plan)).ljust(step)

    per_band = columns if is_loose else max(1, (WIDTH - head) // step)
    for first in range(0, columns, per_band):
        band = range(first, min(columns, first + per_band))
        if first:
            yield ""
        for row in reversed(range(len(labels))):
            text = "".join(region(column, row) for column in band)
            yield f"{labels[row]:>{head - 1}} {text}".rstrip()
        yield " " * head + _edge_values(across, band, step, int(is_loose))
    here, before = ("[ ]", "· ·") if is_loose else ("@", "small letters:")
    yield f"{' ' * head}{here} the next round, {before} rounds before it"


def _edge_values(axis: AxisView, band: range, step: int, offset: int) -> str:
    """Return the values where the first column of a band begins, where another begins, and where the last one ends."""
    line, last = "", number(axis.edges[band[-1] + 1])
    end = len(band) * step - offset - len(last)
    for column in (band[0], *band[:: max(1, len(band) // 2)][1:2]):
        text, place = number(axis.edges[column]), (column - band[0]) * step + offset
        if not line or (place > len(line) and place + len(text) < end):
            line = line.ljust(place) + text
    return line.ljust(end) + last if len(line) < end else f"{line} … {last}"


_PICTURE_WIDTH = 900.0
_LEFT, _TOP, _CELL, _MOST = 92.0, 74.0, 44.0, 460.0
#: Where the legend begins, right of the regions.
_GAP = 36.0


def chart_svg(charts: Sequence[ChartView]) -> str:
    """Return a picture of all charts of a loom, one below the other."""
    canvas, y, middle = Canvas(), 0.0, _PICTURE_WIDTH / 2
    for chart in charts:
        y = _Drawing(canvas, chart, y).draw()
    if not charts:
        canvas.text(middle, 60, "no chart has been drawn yet", 13, FAINT, room=_PICTURE_WIDTH, anchor="middle")
        y = 110.0
    return canvas.document(_PICTURE_WIDTH, y + 12, "charts of the best plans")


class _Drawing:
    """One chart: two dimensions, regions coloured by plan, and the path of the last rounds."""

    def __init__(self, canvas: Canvas, chart: ChartView, above: float) -> None:
        self.canvas, self.chart, self.top = canvas, chart, above + _TOP
        self.across, self.up = (*chart.axes, _ONE_ROW, _ONE_ROW)[:2]
        self.columns, self.rows = len(self.across.edges) - 1, len(self.up.edges) - 1
        self.wide, self.high = min(_CELL, _MOST / self.columns), min(_CELL, _MOST / self.rows)
        self.right, self.bottom = _LEFT + self.columns * self.wide, self.top + self.rows * self.high
        self.colours = {letter: PALETTE[place % len(PALETTE)] for place, letter in enumerate(chart.plans)}

    def draw(self) -> float:
        """Draw the chart, and return the height at which it ends."""
        canvas, chart, room = self.canvas, self.chart, _PICTURE_WIDTH - _LEFT - 20
        canvas.text(_LEFT, self.top - 46, f"Best plans for {chart.basin}", 17, INK, room=room, bold=True)
        regions = f"{self.columns} × {self.rows} regions; each has the best plan for its centroid"
        canvas.text(_LEFT, self.top - 26, regions, 12, FAINT, room=room)
        for (column, row), letter in chart.regions.items():
            x, y, colour = _LEFT + column * self.wide, self.bottom - (row + 1) * self.high, self.colours[letter]
            with canvas.group(f"{letter}: {chart.plans[letter]}"):
                canvas.rect(x, y, self.wide, self.high, colour, stroke=PAPER, extra=' fill-opacity="0.32"')
                if min(self.wide, self.high) >= 16:
                    size = min(13.0, 0.45 * self.high)
                    canvas.text(x + 6, y + size + 4, letter, size, colour, room=self.wide, bold=True)
        self._draw_axes()
        self._draw_path()
        return max(self.bottom + 58, self._draw_legend())

    def _draw_axes(self) -> None:
        canvas, right, bottom = self.canvas, self.right, self.bottom
        across, up = (f"{axis.figure}, {axis.unit}" if axis.unit else axis.figure for axis in (self.across, self.up))
        canvas.line(_LEFT, bottom, right, bottom, RULE)
        for part in range(0, self.columns + 1, -(-self.columns // 5)):
            x = _LEFT + part * self.wide
            canvas.line(x, bottom, x, bottom + 5, FAINT, 0.8)
            canvas.text(x, bottom + 18, number(self.across.edges[part]), 10.5, FAINT, room=90, anchor="middle")
        canvas.text((_LEFT + right) / 2, bottom + 38, across, 12, INK, room=right - _LEFT + 120, anchor="middle")
        if self.up is _ONE_ROW:
            return
        canvas.line(_LEFT, self.top, _LEFT, bottom, RULE)
        for part in range(0, self.rows + 1, -(-self.rows // 5)):
            y = bottom - part * self.high
            canvas.line(_LEFT - 5, y, _LEFT, y, FAINT, 0.8)
            canvas.text(_LEFT - 9, y + 4, number(self.up.edges[part]), 10.5, FAINT, room=_LEFT - 14, anchor="end")
        canvas.text(8, self.top - 9, f"↑ {up}", 12, INK, room=right - 8)

    def _draw_path(self) -> None:
        """Draw the path of the last rounds: older dots are lighter, and rounds at the same place share one dot."""
        scales = [
            Scale(axis.edges[0], axis.edges[-1], *ends, (), axis.is_geometric)
            for axis, ends in ((self.across, (_LEFT, self.right)), (self.up, (self.bottom, self.top)))
        ]

        def at(*point: float) -> tuple[float, float]:
            x, y = (
                scale.at(min(scale.high, max(scale.low, value)))
                for scale, value in zip(scales, (*point, self.up.value, self.up.value), strict=False)
            )
            return x, y

        now = at(*(axis.value for axis in self.chart.axes))
        points = [at(*point) for point in self.chart.path] or [now]
        for place in range(1, len(points)):
            strength = 0.25 + 0.75 * place / len(points)
            ends = *points[place - 1], *points[place]
            self.canvas.line(*ends, INK, 1.6, extra=f' stroke-opacity="{shown(strength)}"')
        spots = set()
        for place, (x, y) in enumerate(points[:-1]):
            if (spot := (round(x), round(y))) not in spots:
                spots.add(spot)
                strength = 0.35 + 0.65 * (place + 1) / len(points)
                self.canvas.dot(x, y, 2.4, INK, extra=f' fill-opacity="{shown(strength)}"')
        with self.canvas.group("where the next round is expected"):
            self.canvas.dot(*now, 7, PAPER, extra=f' stroke="{INK}" stroke-width="2"')
            self.canvas.dot(*now, 3, INK)

    def _draw_legend(self) -> float:
        """Draw the plans, the candidates of the next round, and why these are the dimensions; return its end."""
        canvas, chart = self.canvas, self.chart
        x, y = self.right + _GAP, self.top + 6
        room = _PICTURE_WIDTH - x - 16

        def write(text: str, x: float, y: float, room: float) -> float:
            """Write a text in as many lines as it needs, and return the height below them."""
            line = ""
            for word in [*text.split(), ""]:
                longer = f"{line} {word}"
                if line and (not word or text_width(longer.strip(), 11) > room):
                    canvas.text(x, y, line, 11, FAINT, room=room)
                    y, longer = y + 14, word
                line = longer.strip()
            return y

        for letter, text in chart.plans.items():
            canvas.rect(x, y - 9, 14, 14, self.colours[letter], radius=3, extra=' fill-opacity="0.45"')
            head = f"{letter}, in force" if letter == chart.present else letter
            canvas.text(x + 22, y + 2, head, 12.5, self.colours[letter], room=room - 22, bold=True)
            y = write(text, x + 22, y + 17, room - 22) + 8
        facts = [candidate_text(view, place, len(chart.candidates)) for place, view in enumerate(chart.candidates[:2])]
        facts += [f"{axis.figure}: {axis.reason}" for axis in chart.axes[:2]]
        facts += [f"held at {number(axis.value)}: {axis.figure}" for axis in chart.axes[2:]]
        if chart.path:
            facts.append(f"line: the last {count(len(chart.path), 'round')}, dark are the newest; ring: the next round")
        for text in facts:
            y = write(text, x, y + 4, room)
        return y + 10
