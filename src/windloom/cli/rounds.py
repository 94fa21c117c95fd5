"""Shows the rounds of a stream: as a live table on a terminal, otherwise as one line per round, or as JSON lines."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from windloom.engine.progress import RoundProgress
    from windloom.sinks.delivery import SinkWait

_RECENT = 10
_STOPS = "Ctrl-C stops after the current round"
#: Of the attempts to give a round to a sink that is down, the first and every tenth get a line.
_SAID_EVERY = 10
#: A terminal narrower than this shows the essential columns only.
_WIDE = 140


class RoundTotals:
    """Figures of all rounds of this process, as one line."""

    def __init__(self) -> None:
        self.rounds = self.events = self.late = self.untimed = self.results = 0
        self.last: RoundProgress | None = None
        # The latest ones that were instants: a finished stream has none.
        self.watermark: str | None = None
        self.frontiers: dict[str, str | None] = {}

    def add(self, done: RoundProgress) -> None:
        self.rounds += 1
        self.events += done.events
        self.late += done.late_partly + done.late_dropped
        self.untimed += done.untimed
        self.results += done.results
        self.last = done
        self.watermark = done.watermark or self.watermark
        self.frontiers = {name: frontier or self.frontiers.get(name) for name, frontier in done.frontiers.items()}

    def __str__(self) -> str:
        if self.last is None:
            return "no round yet"
        last = self.last
        odd = [f"{self.late:,} late"] if self.late else []
        odd += [f"{self.untimed:,} without a time"] if self.untimed else []
        return (
            f"{_counted(self.rounds, 'round')}, {self.events:,} events{_bracketed(odd)} → {self.results:,} rows"
            f" of {_counted(last.queries, 'query', 'queries')} in {_counted(last.trees, 'tree')};"
            f" {_watermarks(self.watermark, self.frontiers)}"
        )


class RoundLine:
    """Shows rounds, and what one waits for, a line for each; called by the thread that runs the round."""

    def __init__(self, line: Callable[[RoundProgress], str]) -> None:
        self.totals, self._line = RoundTotals(), line
        self.is_read = True  # False when whoever read the lines has gone

    def show(self, done: RoundProgress) -> None:
        self.totals.add(done)
        try:
            click.echo(self._line(done))
            sys.stdout.flush()
        except BrokenPipeError:
            self.is_read = False
            # Otherwise Python complains when it flushes the rest at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def wait(self, wait: SinkWait | None) -> None:
        if wait is None:
            self.say("it is back, and the round goes on")
        elif wait.attempts == 1 or wait.attempts % _SAID_EVERY == 0:
            self.say(str(wait))

    def say(self, line: str) -> None:
        click.echo(f"… {line}", err=True)


@contextmanager
def view_of(as_json: bool) -> Iterator[RoundLine]:
    """Give the view that suits the terminal, or its absence."""
    console = Console(highlight=False)
    if as_json or not console.is_terminal:
        yield RoundLine((lambda done: json.dumps(done.as_dict())) if as_json else round_line)
        return
    # Drawn only when there is something new, by the thread of the round.
    with Live(console=console, auto_refresh=False) as live:
        view = _LiveView(live, console.width >= _WIDE)
        try:
            yield view
        finally:
            view.say("")


class _LiveView(RoundLine):
    """Shows rounds in a table that changes in place."""

    def __init__(self, live: Live, is_wide: bool) -> None:
        self.totals, self.is_read = RoundTotals(), True
        self._live, self._is_wide = live, is_wide
        self._recent: deque[RoundProgress] = deque(maxlen=_RECENT)
        self._said = _STOPS
        self._draw()

    def show(self, done: RoundProgress) -> None:
        self.totals.add(done)
        self._recent.append(done)
        self._draw()

    def wait(self, wait: SinkWait | None) -> None:
        self.say(_STOPS if wait is None else str(wait))

    def say(self, line: str) -> None:
        self._said = line
        self._draw()

    def _draw(self) -> None:
        parts = [round_table(list(self._recent), self._is_wide)] if self._recent else []
        said = [Text(f"{self._said} …", style="dim")] if self._said else []
        self._live.update(Group(Text(str(self.totals)), *parts, *said), refresh=True)


def round_table(recent: list[RoundProgress], is_wide: bool) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    columns = [column for column in _COLUMNS if is_wide or column[2]]
    if any(done.postponed for done in recent):
        columns.insert(5 if is_wide else 4, _LEFT)
    for name, _, _ in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for done in recent:
        table.add_row(*(text(done) for _, text, _ in columns))
    return table


def round_line(done: RoundProgress) -> str:
    odd = [f"{done.late_partly:,} partly late"] if done.late_partly else []
    odd += [f"{done.late_dropped:,} dropped as late"] if done.late_dropped else []
    odd += [f"{done.untimed:,} without a time"] if done.untimed else []
    rows = [f"{done.late_windows:,} of {_counted(done.answered_windows, 'window')} late"] if done.late_windows else []
    rows += [f"{_counted(sum(done.postponed.values()), 'window')} left to later rounds"] if done.postponed else []
    stages = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in done.seconds.items())
    predicted = "" if done.predicted is None else f", predicted {done.predicted:.2f} s"
    new = [
        f" relation {name}: version {relation['version']};"
        for name, relation in done.relations.items()
        if relation["changed"]
    ]
    return (
        f"round {done.round}: {done.events:,} events{_bracketed(odd)} → {done.partials:,} partials"
        f" → {done.results:,} rows{_bracketed(rows)}; {_times(done)};{''.join(new)}"
        f" {done.total_seconds:.2f} s ({stages}){predicted};"
        f" state {_state_size(done)}, {_counted(done.trees, 'tree')}, plan {done.plan_version}"
    )


def _counted(number: int, singular: str, many: str | None = None) -> str:
    return f"{number:,} {singular if number == 1 else many or singular + 's'}"


def _bracketed(facts: list[str]) -> str:
    return f" ({', '.join(facts)})" if facts else ""


def _watermark(instant: str | None) -> str:
    return "–" if instant is None else instant.replace("T", " ").removesuffix("+00:00")


def _watermarks(least: str | None, frontiers: Mapping[str, str | None]) -> str:
    """Return the watermark of the only stream, or that of each of several streams."""
    if len(frontiers) < 2:
        return f"watermark {_watermark(least)}"
    return "watermarks " + ", ".join(f"{name} {_watermark(frontier)}" for name, frontier in frontiers.items())


def _times(done: RoundProgress) -> str:
    if len(done.frontiers) < 2:
        return f"watermark {_watermark(done.watermark)}, lag {_lag(done)}"
    lags = {name: "" if lag is None else f" (lag {duration_text(lag)})" for name, lag in done.lags.items()}
    watermarks = (f"{name} {_watermark(frontier)}{lags[name]}" for name, frontier in done.frontiers.items())
    return f"watermarks {', '.join(watermarks)}"


def _lag(done: RoundProgress) -> str:
    return "–" if done.lag is None else duration_text(done.lag)


def _stage(*names: str) -> Callable[[RoundProgress], str]:
    return lambda done: f"{sum(done.seconds.get(name, 0.0) for name in names):.2f}"


def duration_text(seconds: float) -> str:
    """Return seconds in the unit people would use.

    >>> duration_text(3.21), duration_text(-90), duration_text(86400 * 12)
    ('3.2 s', '-1.5 min', '12.0 d')
    """
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"


def _state_size(done: RoundProgress) -> str:
    from windloom.model.formatting import size_text  # with the model comes pyarrow, which --help does not need

    return size_text(done.state_bytes)


#: A column that is shown if some round has left windows to later ones.
_LEFT: tuple[str, Callable[[RoundProgress], str], bool] = (
    "left",
    lambda done: f"{sum(done.postponed.values()):,}",
    True,
)
#: Header, text, and whether a narrow terminal shows it. Stages are in the order in which a round passes them.
_COLUMNS: tuple[tuple[str, Callable[[RoundProgress], str], bool], ...] = (
    ("round", lambda done: f"{done.round:,}", True),
    ("events", lambda done: f"{done.events:,}", True),
    ("late", lambda done: f"{done.late_partly + done.late_dropped:,}", True),
    ("partials", lambda done: f"{done.partials:,}", False),
    ("rows", lambda done: f"{done.results:,}", True),
    ("watermark", lambda done: _watermark(done.watermark)[:19], True),  # to the second
    ("lag", _lag, True),
    ("seconds", lambda done: f"{done.total_seconds:.2f}", True),
    ("= spark", _stage("partials"), False),
    ("+ log", _stage("log"), False),
    ("+ step", _stage("step"), False),
    ("+ answers", _stage("answers"), False),
    ("+ commit", _stage("commit", "snapshot"), False),
    ("state", _state_size, True),
    ("trees", lambda done: f"{done.trees:,}", False),
    ("plan", lambda done: f"{done.plan_version:,}", False),
)
