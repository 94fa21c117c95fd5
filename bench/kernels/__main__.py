"""`python -m bench.kernels speed | operations`: how fast every technique is here, as ratios within one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from math import log2
from pathlib import Path
from typing import Any

import click

from windloom.cli.options import showing_progress
from windloom.errors import WindloomError

Rows = list[dict[str, Any]]


@click.group(epilog="Example: python -m bench.kernels speed --quick", short_help="Measure speed on this machine.")
def bench() -> None:
    """Measure speed on this machine."""


@bench.command(
    epilog="Example: python -m bench.kernels speed --quick --out build/bench",
    short_help="Every technique of final aggregation.",
)
@click.option("--quick", is_flag=True, help="Smaller inputs and fewer repeats: about a minute.")
@click.option("--bars", "only_bars", is_flag=True, help="Only what a bar is set for, with the fast techniques.")
@click.option("--out", default="build/bench", metavar="DIR", help="Where kernels.json and the charts go.")
@click.option("--quiet", is_flag=True, help="No progress.")
def speed(quick: bool, only_bars: bool, out: str, quiet: bool) -> None:
    """Measure every technique: throughput, 100 and all ranges, latency of single slides, memory, the step.

    Ratios are against a bare compiled loop over the same array, within the same run.
    """
    from bench.kernels import measure

    size = measure.QUICK if quick else measure.FULL
    if only_bars:
        size = measure.bars_only(size)
    with showing_progress(quiet) as tell:
        found: dict[str, Any] = {
            "single_query": measure.single_query(size, tell),
            "many_ranges": measure.many_ranges(size, tell),
            "latency": measure.latencies(size, tell),
            "memory": measure.memory(size, tell),
            "step": measure.through_step(size, tell),
        }
    found["bars"] = bars(found)
    for line in table(found):
        click.echo(line)
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernels.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        for name, picture in charts(found).items():
            (folder / name).write_text(picture, encoding="utf-8")
    except OSError as error:
        raise WindloomError(f"cannot write to '{out}'", str(error), "choose another --out") from None
    click.echo(f"\nwritten to {folder}/kernels.json, with charts as SVG beside it")


@bench.command(
    epilog="Example: python -m bench.kernels operations --window 128",
    short_help="Counted operations against their estimates.",
)
@click.option("--window", default=64, show_default=True, metavar="CELLS", help="The longest window.")
def operations(window: int) -> None:
    """Count the operations of every technique, slide by slide, beside Ω, the estimate plans are made with.

    Runs in a process of its own whose kernels count (WINDLOOM_COUNT_OPERATIONS=1).
    """
    if window < 8:
        raise WindloomError(
            f"a window of {window} cells is too short to count",
            "an eighth of it is a range too",
            "use --window 8 or more",
        )
    environment = {**os.environ, "WINDLOOM_COUNT_OPERATIONS": "1"}
    command = [sys.executable, "-m", "bench.kernels.slides", str(window)]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    ranges = [window // 8, window // 4, window // 2, window]
    click.echo(
        f"operations per slide: one query of {window} cells (Ω, mean, worst); ranges {ranges} together (Ω, mean)"
    )
    for row in json.loads(finished.stdout):
        if row["input"] != "random":
            continue
        single, four = (_estimate(row["technique"], row["family"], lengths) for lengths in ([window], ranges))
        worst = "–" if row["slide_worst"] is None else row["slide_worst"]
        click.echo(
            f"  {row['technique']:<20}{row['family']:<9}Ω {single:6.2f}  mean {row['mean']:6.2f}  worst {worst:>3}"
            f"   |   Ω {four:6.2f}  mean {row['four_ranges_per_slide']:6.2f}"
        )


def _estimate(technique: str, family: str, lengths: list[int]) -> float:
    """Ω of windows of these lengths in cells, each sliding a cell."""
    import numpy as np

    from windloom.kernels.families import FAMILIES
    from windloom.model.time import TICKS_PER_SECOND
    from windloom.model.windows import TimeWindow
    from windloom.optimizer.cost.papers import Load, cost_name, omega

    load = Load.of([[TimeWindow(length * TICKS_PER_SECOND, TICKS_PER_SECOND) for length in lengths]])
    return float(omega([cost_name(technique, FAMILIES[family])], load, np.ones(1))[0])


def bars(found: dict[str, Any]) -> Rows:
    """What was asked for, and what was found; ratios against the reading loop, beside it against the others."""
    rows: Rows = []

    def bar(what: str, figure: float, limit: float, at_least: bool, note: str = "") -> None:
        holds = figure >= limit if at_least else figure <= limit
        rows.append(
            {"what": what, "figure": figure, "bar": ("≥ " if at_least else "≤ ") + f"{limit:g}", "holds": holds}
            | {"note": note}
        )

    at = {
        (row["technique"], row["kind"]): row
        for row in found["single_query"]
        if (row["window"], row["input"]) == (4096, "random")
    }
    for technique, kind, limit in (
        ("slick_deque", "sum", 0.25),
        ("two_stacks", "sum", 0.25),
        ("two_stacks", "max", 0.25),
        ("block_decomposition", "sum", 0.25),
        ("block_decomposition", "max", 0.25),
        ("slick_deque", "max", 0.08),
        ("daba", "sum", 0.08),
        ("daba", "max", 0.08),
    ):
        row = at[technique, kind]
        others = ", ".join(f"{row[f'ratio_{loop}']:.2f} {loop}" for loop in ("float", "vector", "writing"))
        note = f"{1e3 / row['ns']:.0f}M slides/s; other loops: {others}"
        bar(f"{technique}, {kind}, w = 4096, share of the loop", row["ratio_reading"], limit, True, note)
    worst = {(row["technique"], row["kind"]): row["max_ns"] for row in found["latency"]}
    for kind in ("sum", "max"):
        bar(
            f"TwoStacks' slowest slide / DABA's, {kind}",
            worst["two_stacks", kind] / worst["daba", kind],
            50,
            True,
            f"{worst['two_stacks', kind]:,.0f} ns against {worst['daba', kind]:,.0f} ns",
        )
    for kind, limit in (("sum", 2.0), ("max", 8.0)):
        hundred = [row for row in found["many_ranges"] if row["ranges"] == "100 ranges" and row["kind"] == kind]
        best = min(hundred, key=lambda row: float(row["ns"]))
        others = ", ".join(f"{1 / best[f'ratio_{loop}']:.1f}× {loop}" for loop in ("float", "vector", "writing"))
        note = f"{best['technique']}, {best['ns']:.2f} ns; other loops: {others}"
        bar(f"100 ranges, {kind}: answer / loop's element", 1 / best["ratio_reading"], limit, False, note)
    step = found["step"]
    bar("step, 100 × 100: million rows/s", step["rows_per_second"] / 1e6, 15, True)
    bar("step, 100 × 100: share of writing alone", step["ratio_writing"], 0.3, True)
    return rows


def table(found: dict[str, Any]) -> Iterable[str]:
    """Everything as lines of text."""
    singles = found["single_query"]
    for kind in ("sum", "max"):
        mine = [row for row in singles if row["kind"] == kind]
        lengths = sorted({row["window"] for row in mine})
        yield f"\n{kind}, one query, random input: nanoseconds per slide by window length (share of the reading loop)"
        yield f"  {'':<20}" + "".join(f"{length:>16,}" for length in lengths)
        for technique in dict.fromkeys(row["technique"] for row in mine):
            cells = {row["window"]: row for row in mine if (row["technique"], row["input"]) == (technique, "random")}
            line = [f"{cells[n]['ns']:.2f} ({cells[n]['ratio_reading']:.2f})" if n in cells else "–" for n in lengths]
            yield f"  {technique:<20}" + "".join(f"{cell:>16}" for cell in line)
        patterns = list(dict.fromkeys(row["input"] for row in mine))
        yield f"\n{kind}, one query, window 4,096: nanoseconds per slide by input"
        yield f"  {'':<20}" + "".join(f"{pattern:>12}" for pattern in patterns)
        for technique in dict.fromkeys(row["technique"] for row in mine if row["window"] == 4096):
            by = {row["input"]: row for row in mine if (row["technique"], row["window"]) == (technique, 4096)}
            yield f"  {technique:<20}" + "".join(f"{by[pattern]['ns']:>12.2f}" for pattern in patterns)
    for name in dict.fromkeys(row["ranges"] for row in found["many_ranges"]):
        yield f"\n{name}: nanoseconds per answer"
        rows = [row for row in found["many_ranges"] if row["ranges"] == name]
        for technique in dict.fromkeys(row["technique"] for row in rows):
            by = {row["kind"]: row["ns"] for row in rows if row["technique"] == technique}
            yield f"  {technique:<20}" + "".join(f"  {kind} {by[kind]:8.2f}" for kind in by)
    window = found["latency"][0]["window"]
    yield f"\nlatency of single slides, window {window:,}: nanoseconds, a clock reading included"
    for row in found["latency"]:
        yield (
            f"  {row['technique']:<20}{row['kind']:<5}p50 {row['p50_ns']:>8,.0f}   p99.9 {row['p999_ns']:>10,.0f}"
            f"   max {row['max_ns']:>12,.0f}"
        )
    for first in found["memory"][:1]:
        size = f"window {first['window']:,} of {first['cells']:,} cells"
        yield f"\nmemory beyond cells and answers, {size}, falling input"
    for row in found["memory"]:
        yield f"  {row['technique']:<20}{row['kind']:<5}{row['bytes'] / 2**20:>10.1f} MiB"
    yield "\nbars (shares of the loop that only reads; the note has the other loops)"
    for row in found["bars"]:
        mark = "holds" if row["holds"] else "MISSED"
        yield f"  {row['what']:<52}{row['figure']:>8.3g}  {row['bar']:<7} {mark:<7} {row['note']}"


def charts(found: dict[str, Any]) -> dict[str, str]:
    """File name to SVG."""
    from windloom.explain.picture.line_charts import Series, line_chart
    from windloom_tools.demo.bars import bar_chart

    made = {}
    for kind in ("sum", "max"):
        rows = [row for row in found["single_query"] if row["kind"] == kind and row["input"] == "random"]
        lines = [
            Series(
                technique,
                [(log2(row["window"]), 1e3 / row["ns"]) for row in rows if row["technique"] == technique],
            )
            for technique in dict.fromkeys(row["technique"] for row in rows)
        ]
        made[f"throughput_{kind}.svg"] = line_chart(
            lines,
            y_label=f"{kind}: million slides per second, by log2 of the window's cells",
            title=f"throughput, {kind}",
        )
        slow = [(row["technique"], row["max_ns"], "") for row in found["latency"] if row["kind"] == kind]
        made[f"latency_{kind}.svg"] = bar_chart(
            slow, "ns, slowest slide", log=True, title=f"slowest slide, {kind}", highlight=None
        )
        hundred = [
            (row["technique"], row["ns"], "")
            for row in found["many_ranges"]
            if row["kind"] == kind and row["ranges"] == "100 ranges"
        ]
        made[f"ranges_{kind}.svg"] = bar_chart(
            hundred, "ns per answer", log=True, title=f"100 ranges, {kind}", highlight=None
        )
    return made


if __name__ == "__main__":
    try:
        bench.main(standalone_mode=False)
    except (WindloomError, click.ClickException) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
