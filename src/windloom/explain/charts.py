"""Charts as text and JSON: the regions of two dimensions with their plans, where the stream is, and the candidates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from windloom.explain.chart_grid import grid_lines
from windloom.explain.lines import WIDTH, fact, listing, one_line, shorten, wrapped
from windloom.model.figures import count, number, share
from windloom.plan.adapting import AdaptView, AxisView, CandidateView, ChartView

#: The number of rounds whose prediction is compared with the seconds they took.
_COMPARED = 12


def adapt_lines(view: AdaptView) -> Iterator[str]:
    """How a running loom follows its data."""
    counted = f"{count(view.moves, 'move')}, {count(view.switches, 'switch', 'switches')}"
    yield f"Adapting: plans for {view.objective}; {counted}"
    yield from fact("fidelity", fidelity_text(view))
    yield from fact("predicted", predicted_text(view))
    if view.rounds:
        lines = ", ".join(f"{name} {_line(*line)}" for name, line in view.learned.items())
        rest = f", and {number(1e3 * view.rest)} ms for logs and commits"
        yield from fact("learned", f"from {count(view.rounds, 'round')}, of the model's seconds: {lines}{rest}")
    if view.damaged:
        yield from fact("damaged", damaged_text(view.damaged))
    if view.failure:
        yield from fact("stopped", f"plans are no longer made, and the present one stays: {one_line(view.failure)}")
    for chart in view.charts:
        yield ""
        yield from chart_lines(chart)
    if not view.charts:
        yield from fact("plans", "none yet: they are compared after the first round")


def damaged_text(files: Sequence[str]) -> str:
    """The statistics that are missing from estimates, and what to do about it."""
    names = listing([f"'{name}'" for name in files], 4)
    return f"{names}: damaged, so estimates are made without what these rounds observed; delete them, or restore copies"


def fidelity_text(view: AdaptView) -> str:
    if not view.judged:
        return "no round has been judged yet"
    hits, same = share(view.hits / view.judged), share(view.same / view.judged)
    lost = f"{number(view.regret)} s lost in all"
    return (
        f"{hits} of {count(view.judged, 'judged round')} had a plan as good as the best, {same} the very best; {lost}"
    )


def predicted_text(view: AdaptView) -> str:
    """How far predictions of the last rounds were off."""
    known = [
        (round_view.predicted, round_view.seconds)
        for round_view in view.recent
        if round_view.predicted is not None and round_view.seconds > 0
    ]
    if not known:
        return "no round has been predicted yet"
    known = known[-_COMPARED:]
    off = sorted(abs(predicted / seconds - 1) for predicted, seconds in known)
    last = f"the last round {number(known[-1][0])} s predicted, {number(known[-1][1])} s taken"
    return f"{last}; off by {share(off[len(off) // 2])} (median of {count(len(off), 'round')})"


def _line(constant: float, factor: float) -> str:
    start = f"{number(1e3 * constant)} ms + " if constant >= 5e-4 else ""
    return f"{start}× {number(factor)}"


def chart_lines(chart: ChartView) -> Iterator[str]:
    title = f"Chart of {one_line(chart.basin)}: {_size(chart)}" if chart.axes else f"Plans of {one_line(chart.basin)}"
    yield shorten(title, WIDTH)
    for name, axis in zip(("across", "up", *("held",) * len(chart.axes)), chart.axes, strict=False):
        yield from fact(name, axis_text(axis))
    if chart.regions:
        yield ""
        yield from grid_lines(chart)
        yield ""
    label = "plans"
    for letter, text in chart.plans.items():
        in_force = " (in force)" if letter == chart.present else ""
        yield from wrapped(f"{letter}{in_force}: {one_line(text)}", f"  {label:12}  ", " " * 16)
        label = ""
    label = "candidates"
    for place, view in enumerate(chart.candidates):
        yield from fact(label, candidate_text(view, place, len(chart.candidates)))
        label = ""
    if chart.path:
        yield from fact("path", path_text(chart))


def _size(chart: ChartView) -> str:
    sizes = " × ".join(str(len(axis.edges) - 1) for axis in chart.axes)
    way = "geometric" if all(axis.is_geometric for axis in chart.axes) else "regular"
    return f"{sizes} regions, {way} parts"


def axis_text(axis: AxisView) -> str:
    unit = f" {axis.unit}" if axis.unit else ""
    ends = f"{number(axis.edges[0])} to {number(axis.edges[-1])}{unit}"
    return f"{one_line(axis.figure)}, {ends}, now {number(axis.value)}: {axis.reason}"


def candidate_text(view: CandidateView, place: int, of: int) -> str:
    """The two terms of a candidate's utility, which is least for the best."""
    role = "best" if place == 0 else ("runner-up" if place == 1 else f"{place + 1} of {of}")
    return (
        f"{view.plan}, {role}: {number(1e3 * view.seconds)} ms and {number(view.nbytes / 2**20)} MiB per round;"
        f" utility {view.utility:.3f} = {view.latency:.3f} for latency + {view.memory:.3f} for memory"
    )


def path_text(chart: ChartView) -> str:
    first, last = chart.path[0], chart.path[-1]
    moved = [f"{one_line(axis.figure)} {number(first[i])} → {number(last[i])}" for i, axis in enumerate(chart.axes)]
    return f"{count(len(chart.path), 'round')}: {', '.join(moved)}"


def charts_text(charts: tuple[ChartView, ...]) -> str:
    lines: list[str] = []
    for chart in charts:
        lines += ["", *chart_lines(chart)] if lines else chart_lines(chart)
    return "\n".join(lines) + "\n"


def chart_json(chart: ChartView) -> dict[str, Any]:
    found = asdict(chart)
    found["regions"] = [[*place, letter] for place, letter in chart.regions.items()]
    found["path"] = [list(point) for point in chart.path]
    return found


def adapt_json(view: AdaptView) -> dict[str, Any]:
    return {**asdict(view), "charts": [chart_json(chart) for chart in view.charts]}
