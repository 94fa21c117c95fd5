"""What the service shows of rounds as they are done: events for watchers, figures for Prometheus, totals and rates.

An event is encoded once and handed to each watcher, without waiting for anyone.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import Counter as CollectionsCounter
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from windloom.engine.progress import RoundProgress
from windloom.errors import WindloomError
from windloom.sinks.delivery import SinkWait

#: Rounds that a new watcher, or one that was away, is sent at once.
HISTORY = 100
#: Rounds that a watcher may be behind before it is disconnected; it reconnects and is sent the rounds it missed.
_BEHIND = 64
#: If no round comes for this long, a comment is sent, because proxies close silent connections.
_SILENCE_SECONDS = 15.0
_END = None


class RoundFeed:
    """`publish` is called by the thread of a round; everything else by the loop that serves."""

    def __init__(self, most_watchers: int = 1_000, history: int = HISTORY) -> None:
        self.most_watchers = most_watchers
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=history)
        self._watchers: dict[asyncio.Queue[bytes | None], asyncio.AbstractEventLoop] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def publish(self, done: RoundProgress) -> None:
        """Send a round, and remember it for watchers to come."""
        data = json.dumps(done.as_dict(), separators=(",", ":"))
        self._send(f"id: {done.round}\nevent: round\ndata: {data}\n\n".encode(), done.round)

    def announce(self, what: str) -> None:
        """Send an event that something other than a round has changed: `queries`."""
        self._send(f"event: {what}\ndata: {{}}\n\n".encode())

    def close(self) -> None:
        """Tell all watchers that the feed is over, so that the server can stop without waiting for them."""
        self._send(_END)

    async def watch(self, after: int | None = None) -> AsyncIterator[bytes]:
        """Yield server-sent events: the rounds after `after` that are remembered, then those to come."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=_BEHIND + len(self._recent) + 1)
        with self._lock:
            # A watcher that saw more rounds than there are has watched another loom at this address.
            known = after if after is not None and self._recent and after <= self._recent[-1][0] else -1
            for number, event in self._recent:
                if number > known:
                    queue.put_nowait(event)
            if self._is_closed:
                queue.put_nowait(_END)
            self._watchers[queue] = asyncio.get_running_loop()
        try:
            yield b"retry: 2000\n\n"
            while True:
                try:
                    event_or_end = await asyncio.wait_for(queue.get(), _SILENCE_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if event_or_end is _END:
                    return
                yield event_or_end
        finally:
            with self._lock:
                self._watchers.pop(queue, None)

    def _send(self, event: bytes | None, round: int | None = None) -> None:
        with self._lock:
            self._is_closed |= event is _END
            if event is not None and round is not None:
                self._recent.append((round, event))
            watchers = list(self._watchers.items())
        # One call per loop, however many watch, so that the thread of a round continues at once.
        for loop in {loop for _, loop in watchers}:
            queues = [queue for queue, loop_of_queue in watchers if loop_of_queue is loop]
            if not loop.is_closed():
                loop.call_soon_threadsafe(_put_all, queues, event)


def _put_all(queues: list[asyncio.Queue[bytes | None]], event: bytes | None) -> None:
    for queue in queues:
        if queue.full():
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(_END)
        else:
            queue.put_nowait(event)


#: The bounds of the buckets in which seconds are counted.
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


#: Figures of the last round that are shown as they are: by field of its progress, their name and the help.
_LAST_ROUND = {
    "state_bytes": ("windloom_state_bytes", "Bytes of the cells that are kept."),
    "queries": ("windloom_queries", "Queries of the last round."),
    "trees": ("windloom_trees", "Trees of the last round."),
    "plan_version": ("windloom_plan_version", "Version of the last round's plan."),
    "moves": ("windloom_moves", "Moves to other regions of charts so far."),
    "switches": ("windloom_switches", "Switches of plans so far."),
    "previews": ("windloom_previews", "Rounds that were looked into before they began."),
    "fidelity": ("windloom_fidelity", "Share of judged rounds with the best plan."),
    "regret": ("windloom_regret_seconds", "Seconds that better plans would have saved."),
    "predicted": ("windloom_predicted_round_seconds", "Seconds that were predicted of the last round."),
}


class Metrics:
    """Figures for Prometheus: the work of rounds, how far streams are behind, and the predicted costs of queries.

    They have their own registry, so that several looms in one process stay separate.
    """

    def __init__(self, costs: Callable[[], Mapping[str, float]], watchers: Callable[[], int]) -> None:
        self.registry = registry = CollectorRegistry()
        self.rounds = Counter("windloom_rounds_total", "Rounds done by this process.", registry=registry)
        self.round_seconds = Histogram(
            "windloom_round_seconds", "Seconds per round.", buckets=_SECONDS, registry=registry
        )
        self.stage_seconds = Histogram(
            "windloom_stage_seconds", "Seconds per stage of a round.", ["stage"], buckets=_SECONDS, registry=registry
        )
        self.events = Counter("windloom_events_total", "Tuples taken into partials.", registry=registry)
        self.rows = Counter("windloom_rows_total", "Rows written to the sinks.", registry=registry)
        self.untimed = Counter("windloom_untimed_total", "Tuples without a usable time.", registry=registry)
        self.late = Counter("windloom_late_total", "Late tuples.", ["stream", "fate"], registry=registry)
        self.tuples = Counter("windloom_tuples_total", "Tuples that a stream brought.", ["stream"], registry=registry)
        self.cells = Gauge(
            "windloom_cells", "Cells that windows over a stream are answered from.", ["stream"], registry=registry
        )
        self.lag = Gauge(
            "windloom_lag_seconds", "Seconds that a stream is behind the clock.", ["stream"], registry=registry
        )
        deadlines: dict[str, Any] = {"labelnames": ["query"], "registry": registry}
        self.answered = Counter(
            "windloom_deadline_windows_total", "Windows answered, of queries with a deadline.", registry=registry
        )
        self.late_windows = Counter(
            "windloom_late_windows_total", "Windows answered after the deadline of their query.", **deadlines
        )
        self.lateness = Gauge(
            "windloom_lateness_seconds", "By how much the latest window of the last round was late.", **deadlines
        )
        self.postponed = Gauge(
            "windloom_postponed_windows", "Closed windows that are left to later rounds.", **deadlines
        )
        self.last_round = {field: Gauge(name, about, registry=registry) for field, (name, about) in _LAST_ROUND.items()}
        self.relation_version = Gauge(
            "windloom_relation_version", "Version of a relation that was last seen.", ["relation"], registry=registry
        )
        sinks: dict[str, Any] = {"labelnames": ["sink"], "registry": registry}
        self.sink_seconds = Counter("windloom_sink_seconds_total", "Seconds that a sink took for rounds.", **sinks)
        self.sink_waits = Counter(
            "windloom_sink_waited_seconds_total", "Seconds that rounds waited for a sink that was down.", **sinks
        )
        self.sink_failures = Counter(
            "windloom_sink_failures_total", "Attempts to give a round to a sink that was down.", **sinks
        )
        self.sink_waiting = Gauge("windloom_sink_waiting", "Whether a round waits for a sink that is down.", **sinks)
        self._waiting: str | None = None
        self.sink_figures = Counter(
            "windloom_sink_figures_total", "What a sink counts itself.", ["sink", "figure"], registry=registry
        )
        self.requests = Counter(
            "windloom_requests_total", "Requests answered, by status.", ["status"], registry=registry
        )
        self.errors = Counter("windloom_errors_total", "Requests that failed unexpectedly.", registry=registry)
        self.up = Gauge("windloom_up", "Whether the stream is running.", registry=registry)
        Gauge("windloom_watchers", "Event streams that are open.", registry=registry).set_function(watchers)
        registry.register(_Costs(costs))

    def add(self, done: RoundProgress) -> None:
        self.rounds.inc()
        self.round_seconds.observe(done.total_seconds)
        for stage, seconds in done.seconds.items():
            self.stage_seconds.labels(stage).observe(seconds)
        self.events.inc(done.events)
        self.rows.inc(done.results)
        self.untimed.inc(done.untimed)
        for stream, late in done.late.items():
            for fate, number in late.items():
                self.late.labels(stream, fate).inc(number)
        for stream, came in done.tuples.items():
            self.tuples.labels(stream).inc(came)
        for stream, cells in done.cells.items():
            self.cells.labels(stream).set(cells)
        for stream, lag in done.lags.items():
            if lag is not None:
                self.lag.labels(stream).set(lag)
        for sink, figures in done.sinks.items():
            figures_left = dict(figures)
            self.sink_waiting.labels(sink).set(0)
            self.sink_seconds.labels(sink).inc(figures_left.pop("seconds", 0.0))
            self.sink_waits.labels(sink).inc(figures_left.pop("waited", 0.0))
            for figure, value in figures_left.items():
                self.sink_figures.labels(sink, figure).inc(value)
        self.answered.inc(done.answered_windows)
        self.lateness.clear()
        self.postponed.clear()
        for query, answers in done.late_answers.items():
            self.late_windows.labels(query).inc(answers["windows"])
            self.lateness.labels(query).set(answers["seconds"])
        for query, windows in done.postponed.items():
            self.postponed.labels(query).set(windows)
        for field, gauge in self.last_round.items():
            value = getattr(done, field)
            if value is not None:
                gauge.set(value)
        for relation, version in done.relations.items():
            self.relation_version.labels(relation).set(version["version"])

    def wait(self, wait: SinkWait | None) -> None:
        if wait is not None:
            self._waiting = wait.sink
            self.sink_waiting.labels(wait.sink).set(1)
            self.sink_failures.labels(wait.sink).inc()
        elif self._waiting is not None:
            self.sink_waiting.labels(self._waiting).set(0)
            self._waiting = None


class _Costs(Collector):
    """Costs are computed when they are read, because queries come and go."""

    def __init__(self, costs: Callable[[], Mapping[str, float]]) -> None:
        self._costs = costs

    def describe(self) -> Iterable[Metric]:
        about = "Predicted seconds of work per second of event time."
        return [GaugeMetricFamily("windloom_query_cost_seconds", about, labels=["query"])]

    def collect(self) -> Iterable[Metric]:
        (family,) = self.describe()
        assert isinstance(family, GaugeMetricFamily)
        with suppress(WindloomError):
            for name, seconds in self._costs().items():
                family.add_metric([name], seconds)
        yield family


#: Rates are over the rounds of this many seconds.
_SPAN = 60.0


class ServiceTotals:
    """Sums and rates over the rounds of this process, for the figures at a glance."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._begun = clock()
        self._recent: deque[tuple[float, RoundProgress]] = deque()
        self.events = self.rows = 0
        self.tuples: CollectionsCounter[str] = CollectionsCounter()  # by stream
        self.late: dict[str, CollectionsCounter[str]] = {}
        self.last: RoundProgress | None = None

    def add(self, done: RoundProgress) -> None:
        with self._lock:
            self.last = done
            self.events += done.events
            self.rows += done.results
            self.tuples.update(done.tuples)
            for stream, late in done.late.items():
                self.late.setdefault(stream, CollectionsCounter()).update(late)
            self._recent.append((self._clock(), done))
            self._forget()

    def rates(self) -> tuple[float | None, float | None, float | None]:
        """Return events and rows per second of the clock, and seconds per round; None before the first round."""
        with self._lock:
            self._forget()
            if self.last is None:
                return None, None, None
            span = self._span()
            rounds = [done for _, done in self._recent]
            events, rows = sum(progress.events for progress in rounds), sum(progress.results for progress in rounds)
            taken = [progress.total_seconds for progress in rounds] or [self.last.total_seconds]
            return events / span, rows / span, sum(taken) / len(taken)

    def stream_rates(self) -> dict[str, float]:
        """Return tuples per second of the clock, by stream; empty before the first round."""
        with self._lock:
            self._forget()
            came: CollectionsCounter[str] = (
                CollectionsCounter() if self.last is None else CollectionsCounter(dict.fromkeys(self.last.tuples, 0))
            )
            for _, done in self._recent:
                came.update(done.tuples)
            return {name: count / self._span() for name, count in came.items()}

    def _span(self) -> float:
        return max(min(_SPAN, self._clock() - self._begun), 1.0)

    def _forget(self) -> None:
        while self._recent and self._recent[0][0] < self._clock() - _SPAN:
            self._recent.popleft()
