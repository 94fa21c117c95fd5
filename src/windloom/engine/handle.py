"""The handle of a running loom: watch it, change its queries, ask it, stop it. It mirrors Spark's StreamingQuery.

The module is long because users hold one object: nearly every method only checks, documents and hands over.
"""

from __future__ import annotations

import re
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pyarrow as pa

from windloom.answers.presentation import presented
from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.records import PlanRecord
from windloom.engine.budget import DeadlineRecord
from windloom.engine.declare import with_urgency
from windloom.engine.live_queries import LiveQueries
from windloom.engine.loop import CatchingUp, RoundLoop
from windloom.engine.options import StreamOptions, least_seconds, schedule_lines, warning_of
from windloom.engine.progress import RoundProgress, frontier_ticks, instant
from windloom.engine.questions import Answer, Moment, Questions
from windloom.engine.results import WideTable, unknown_query, unknown_table
from windloom.engine.views import AnswerViews, charts_as, cost_view, facts_table, rows_table
from windloom.engine.what_if import WhatIf, compare_plans, unused_name
from windloom.errors import WindloomError, WindloomWarning
from windloom.explain.charts import adapt_lines
from windloom.explain.text import explain_text
from windloom.model.clauses import Emits
from windloom.model.query import Query
from windloom.model.time import TICK_MAX
from windloom.optimizer.adapt.chart_views import adapt_view, charts_of
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.facts import with_statistics
from windloom.plan.adapting import PredictedRound
from windloom.plan.plan import Plan, Shape
from windloom.sinks.current import CurrentSink
from windloom.sinks.delivery import RoundStoppedError, SinkWait
from windloom.sinks.live import LiveSink
from windloom.sinks.sink import Sink, check_query, read_back, replaced
from windloom.sinks.tables import AnswerTables
from windloom.spark.api import DataFrame, StreamingQuery, StructType
from windloom.spark.collect import Ingest
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import arrow_frame, presented_frame

#: The name of the query that an error is about.
_QUERY = re.compile(r"query '(.+?)'")
_ASKED_BY = re.compile(r"asked by '([^']+)'(?!, )")


@dataclass(frozen=True, slots=True)
class Change:
    """A change of queries that is saved in the checkpoint; it takes effect in `round`.

    `complete_from` is the start of the first window that an added query reports: an instant, or (`row 120`) a position.
    It is None if the query reports every window since the stream began (or, for windows of rows that were not counted
    before, since they are counted), and for a removal. `warning` names a deadline
    that no round can keep.
    """

    query: str
    round: int
    complete_from: str | None = None
    warning: str | None = None


class _StoppingError(Exception):
    """Raised into Spark when a micro-batch begins after `stop` was called; none of it was processed."""


class _RoundFailedError(Exception):
    """Raised into Spark when a round failed. It is short, because Spark logs all of it; the handle keeps the cause."""


class Handle(AnswerViews):
    """A running stream, as `loom.start` returns it.

    It tells how rounds go (`progress`, `status`, `explain`), gives their answers if a sink keeps them (`arrow`,
    `table`), changes queries between rounds (`add`, `remove`, `replace`), answers questions beside rounds (`ask`,
    `snapshot`), and ends the stream (`stop`, `await_termination`).
    """

    def __init__(
        self,
        loop: RoundLoop,
        checkpoint: Checkpoint,
        queries: LiveQueries,
        options: StreamOptions,
        sinks: list[Sink],
        tables: AnswerTables,
        is_durable: bool,
        wide: Mapping[str, WideTable] | None = None,
        listener: Callable[[RoundProgress], None] | None = None,
    ) -> None:
        """`listener` is called after every round."""
        self._loop, self._checkpoint, self._queries, self._options = loop, checkpoint, queries, options
        self._sinks, self._tables = sinks, tables
        self._wide, self._listener = wide or {}, listener
        self._is_durable = is_durable  # the checkpoint is still there when the stream has ended
        self._questions = Questions(loop, queries, lambda: self._newest)
        self._catching_up = CatchingUp(loop)
        self._query: StreamingQuery | None = None
        self._recent: deque[RoundProgress] = deque(maxlen=100)
        # Queries that were asked before, by name; of earlier processes, those of the plans that the checkpoint keeps.
        self._before = {name: text for record in checkpoint.plans() for name, text in record.queries.items()}
        self._changes = tuple(checkpoint.changes)  # told with the next round, which is the first that they concern
        self._failure: BaseException | None = None
        self._is_stopping = False
        self._ended = threading.Event()

    @property
    def _newest(self) -> PlanRecord:
        """The plan record that the next round will take up."""
        newest = self._checkpoint.newest_plan()
        assert newest is not None, "there is one before a handle"
        return newest

    # ---- watching -----------------------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        return not self._ended.is_set()

    @property
    def progress(self) -> RoundProgress | None:
        """The last round of this process, or None before the first."""
        return self._recent[-1] if self._recent else None

    @property
    def recent_progress(self) -> list[RoundProgress]:
        return list(self._recent)

    @property
    def status(self) -> dict[str, Any]:
        loop = self._loop
        ticks = frontier_ticks(self._queries.plan_of(self._newest), self._loop.state)
        frontiers = {name: instant(tick) for name, tick in ticks.items()}
        ready = {"isDataAvailable": False, "isTriggerActive": False}
        ready |= {} if self._query is None else self._query.status
        about: dict[str, Any] = {
            **ready,
            "active": self.is_active,
            "message": "ended" if not self.is_active else "starting",
            "round": self._checkpoint.last_committed,
            "watermark": instant(min(ticks.values())),
            "frontiers": frontiers,
            "queries": len(self._newest.queries),
            "placement": loop.placement.description,
            "plan_version": None if loop.record is None else loop.record.version,
            "next_plan_version": self._newest.version,
        }
        if self._failure is not None:
            about["message"] = f"failed: {self._failure}"
        elif self.waiting is not None:
            about["message"] = str(self.waiting)
        elif self.is_active and "message" in ready:
            about["message"] = ready["message"]
        return about

    @property
    def waiting(self) -> SinkWait | None:
        """The sink that the current round waits for, because it is down; None otherwise."""
        return self._loop.delivery.waiting

    @property
    def spark_query(self) -> StreamingQuery:
        """Spark's own query underneath."""
        assert self._query is not None
        return self._query

    @property
    def queries(self) -> Mapping[str, str]:
        """The names and texts of the queries, including changes that wait for the next round."""
        return dict(self._newest.queries)

    @property
    def removed(self) -> Mapping[str, str]:
        """The names and texts of queries that were removed, and whose answers can still be read."""
        queries = self._newest.queries
        return {name: text for name, text in self._before.items() if name not in queries}

    def _repr_html_(self) -> str:
        done = [
            (progress.round, progress.events, progress.results, progress.watermark, progress.total_seconds)
            for progress in self._recent
        ]
        rounds = rows_table("latest rounds", ("round", "events", "rows", "watermark", "seconds"), done[-5:])
        return facts_table("Windloom stream", self.status) + (rounds if done else "")

    @property
    def plan(self) -> Plan:
        """The plan that the next round will run, with what is known now."""
        known = replace(self._queries.known(), versions=self._loop.state.versions)
        return with_statistics(self._queries.plan_of(self._newest), known)

    def explain(self, *, query: str | None = None, queries: bool = False) -> str:
        """The plan that the next round will run, and where it runs."""
        if query is not None and query not in self._newest.queries:
            raise unknown_query(query, list(self._newest.queries))
        plan = self.plan
        costs = cost_view(plan, "seconds", load_constants())
        text = explain_text(plan, costs, all_queries=queries, query=query)
        if query is not None:
            return text
        scheduling, last = self._loop.scheduling, self.progress
        asked = [planned.query for planned in plan.queries]
        left = {} if last is None else last.postponed
        lines = schedule_lines(scheduling, asked, left, least_seconds(scheduling, self._options))
        adapting = self._loop.adapting
        if adapting is not None:
            done = [PredictedRound(each.round, each.predicted, each.total_seconds) for each in self._recent]
            view = replace(adapt_view(adapting.adapter, done), damaged=tuple(self._checkpoint.damaged))
            text += "".join(f"{line}\n" for line in ("", *adapt_lines(view)))
        return "\n".join([f"Placement: {self._loop.placement.description}", *lines, text])

    @property
    def deadlines(self) -> Mapping[str, DeadlineRecord]:
        """How each query has kept its deadlines since this process began.

        For each query: its answered windows, the late ones, and by how many seconds the latest one was late. All
        queries are listed if rounds have a budget, otherwise those that name a deadline.
        """
        return dict(self._loop.scheduling.kept)

    @property
    def warnings(self) -> list[str]:
        """Warnings about queries whose deadline is shorter than any round can be, judging by the rounds so far."""
        least = least_seconds(self._loop.scheduling, self._options)
        plan = self._queries.plan_of(self._newest)
        return [warning for planned in plan.queries if (warning := warning_of(planned.query, least)) is not None]

    def chart(self, format: str = "text") -> str:
        """Charts that show which plan is best around where the stream is now: as "text", "json" or "svg" (a picture).

        Every region is filled first, which takes a while if there are many queries; no round waits for that.
        """
        adapting = self._loop.adapting
        if adapting is None:
            raise WindloomError(
                "this stream has no charts",
                "it was started with adapt=False",
                "use loom.chart, or start with adapt=True",
            )
        return charts_as(format, charts_of(adapting.adapter))

    def exception(self) -> BaseException | None:
        """The error with which the stream failed, or None."""
        return self._failure

    # ---- answers ------------------------------------------------------------------------------------------------

    def arrow(self, name: str) -> pa.Table:
        """What a query selects, of the rows that the sink holds, from all rounds so far; also if it was removed.

        A live sink holds the latest row of each group. Of a query with EMIT EARLY, provisional rows are left out once
        they are replaced or withdrawn.
        """
        rows, schema = presented(self.rows(name), self._asked(name)), self._schema(name)
        return rows if schema is None else rows.rename_columns(schema.names)

    @property
    def zone(self) -> str:
        return self._tables.zone

    def rows(self, name: str) -> pa.Table:
        """The rows of a query with their window and their groups, whatever the query selects."""
        shape = self._shape(name)
        rows = read_back(self._sinks, self._tables.name(shape))
        if rows is None:
            return self._tables.empty(shape).drop_columns("query")
        rows_of_query = rows.filter(pa.compute.equal(rows["query"], name)).drop_columns("query")
        if shape.emits is not Emits.EARLY:
            return rows_of_query
        # Not every sink returns rows in the order of rounds.
        return replaced(rows_of_query, self.grouping(name), is_ordered=False)

    def columns(self, name: str) -> list[str]:
        """The columns of a query's rows that follow `window_start` and `window_end`."""
        columns = self._tables.columns(self._shape(name))
        return [column for column in columns if column not in ("query", "window_start", "window_end")]

    def grouping(self, name: str) -> list[str]:
        return [grouping.name for grouping in self._asked(name).group_by]

    def emission(self, name: str) -> Emits:
        return self._asked(name).emission.kind

    def _asked(self, name: str) -> Query:
        return self._plan_of(name).query(name).query

    def _plan_of(self, name: str) -> Plan:
        """Return a plan that has the query: the newest one, or one of its own if the query was removed."""
        newest = self._newest
        if name in newest.queries:
            return self._queries.plan_of(newest)
        if name in self._before:
            return self._queries.plan_of_removed(name, self._before[name], newest.options)
        raise unknown_query(name, list(newest.queries))

    def _schema(self, name: str) -> StructType | None:
        """Return the schema of the DataFrame that a query was given as; None for a text, and once it is replaced."""
        return self._queries.schema_of(name, self._newest.queries[name]) if name in self._newest.queries else None

    def _shape(self, name: str) -> Shape:
        plan = self._plan_of(name)
        return plan.shapes[plan.query(name).shape]

    def table(self, name: str, at: str = "latest") -> pa.Table:
        """A wide table that was declared with `loom.table`, as of the tick up to which all its queries are answered.

        With `at="every"`, the same at every instant up to then at which a window ends, of the rows that the sink keeps.
        """
        if name not in self._wide:
            raise unknown_table(name, list(self._wide))
        table, state = self._wide[name], self._loop.state
        if at == "every" and all(isinstance(sink, LiveSink | CurrentSink) for sink in self._sinks):
            raise WindloomError(
                f"the table '{name}' cannot be read at='every'",
                "the sink of the stream keeps the latest rows only",
                'add a sink that keeps all of them: sink=["parquet", …], or "memory"',
            )
        closed = min(state.answered_by(query) for query in table.queries)
        return table.rows(self.rows, at, None if closed == TICK_MAX else closed)

    def __getitem__(self, name: str) -> DataFrame:
        """Return what a query selects as a Spark DataFrame; the same rows as `arrow`."""
        schema = self._schema(name)
        if schema is not None:
            return arrow_frame(self._tables.spark, self.arrow(name), schema)
        rows, columns = self.rows(name), self._tables.columns(self._shape(name))
        frame = self._tables.frame(rows, {key: kind for key, kind in columns.items() if key != "query"})
        return presented_frame(frame, self._asked(name))

    def ask(self, text: str, *, latest: bool = False) -> Answer:
        """Answer a query once, over what is kept; nothing is registered, and no round waits for it.

        Kept tuples answer any query over the time for which they are kept; kept partials answer queries that ask for
        the same partials. The answer reflects all of the last committed round, and nothing of the round that is
        running. With `latest`, it is brought up to date with rounds that are committed while it is made.
        """
        return self._questions.ask(text, latest=latest)

    def snapshot(self) -> AbstractContextManager[Moment]:
        """Holds one instant, to ask several questions about it: `with handle.snapshot() as moment: moment.ask(…)`."""
        return self._questions.moment()

    def what_if(self, text: str) -> WhatIf:
        """Return what a query would cost besides the running ones, and its first complete window.

        Nothing is registered; the call waits for the current round.
        """
        loop = self._loop
        with loop.changes:
            name = unused_name(self._newest.queries)
            before, after = self.plan, self._queries.plan_with(self._newest, name, text)
            with loop.lock:
                since = loop.complete_from(after, name)
        query = after.query(name).query
        comparison = compare_plans(before, after, query, load_constants())
        return replace(comparison, complete_from=None if since is None else _told(query, since))

    # ---- changing -----------------------------------------------------------------------------------------------

    def add(
        self, name: str, text: str, *, within: str | timedelta | None = None, priority: int | None = None
    ) -> Change:
        """Register a query with the running loom; it takes part from the next round on.

        `within` and `priority` say how urgent its answers are, as for `loom.query`.
        """
        if name in self._newest.queries:
            raise WindloomError(
                f"query '{name}' is already registered",
                " ".join(self._newest.queries[name].split()),
                "give it another name, or use handle.replace",
            )
        return self._change(name, with_urgency(name, text, within, priority))

    def replace(
        self, name: str, text: str, *, within: str | timedelta | None = None, priority: int | None = None
    ) -> Change:
        """Replace a query by another one; the new query begins with the same window as a query that is added.

        A query of which only the urgency changes keeps its cells and windows.
        """
        if name not in self._newest.queries:
            raise unknown_query(name, list(self._newest.queries))
        return self._change(name, with_urgency(name, text, within, priority))

    def remove(self, name: str) -> Change:
        """Remove a query; it reports no window that closes in the next round or later.

        Its answers can still be read, where the sink keeps them: `removed` names it.
        """
        return self._change(name, None)

    def _change(self, name: str, text: str | None) -> Change:
        if not self.is_active:
            raise WindloomError(
                "the stream has ended", f"its last round was {self._checkpoint.last_committed}", "start it again"
            )
        loop = self._loop
        with loop.changes:
            if text is not None:
                bound = self._queries.bind(name, text)  # mistakes are reported before anything changes
                check_query(self._sinks, bound)
            put, remove = ({}, [name]) if text is None else ({name: text}, [])
            # Planned outside the lock, so that no round waits for the optimizer.
            planned = self._queries.following(self._newest, self._newest.version + 1, 0, put=put, remove=remove)
            with loop.lock:
                # Until a round that waits for a sink continues, the first window of a new query is not known.
                if self.waiting is not None:
                    raise WindloomError(
                        "queries cannot be changed now",
                        str(self.waiting),
                        f"bring '{self.waiting.sink}' back, then try again",
                    )
                if name in loop.state.answered:  # its postponed windows are answered before it changes
                    loop.catch_up(must=[name])
                record = replace(planned, from_round=self._checkpoint.first_free_round)
                self._checkpoint.record_plan(record)
                self._before |= record.queries
                since = None if text is None else loop.adopted(record)[1].since.get(name)
        if text is None:
            return Change(name, record.from_round)
        warning = warning_of(bound, least_seconds(loop.scheduling, self._options))
        if warning is not None:
            warnings.warn(warning, WindloomWarning, stacklevel=3)
        return Change(name, record.from_round, None if since is None else _told(bound, since), warning)

    # ---- ending -------------------------------------------------------------------------------------------------

    def process_all_available(self) -> None:
        """Wait until everything that the sources have at this moment has been taken in by a round and answered."""
        if self._query is not None and self.is_active:
            try:
                with as_windloom_errors("the stream"):
                    self._query.processAllAvailable()
                    if self.is_active:
                        self._loop.catch_up(everything=True)
            except Exception:
                if self._failure is None:
                    raise
        if self._failure is not None:  # Spark only knows that a round has failed
            raise self._failure

    def stop(self, drain: bool = False) -> None:
        """End the stream after the current round; with `drain`, after everything the sources have at this moment."""
        if drain:
            self.process_all_available()
        with self._loop.lock:
            self._is_stopping = True
            self._loop.delivery.stop()  # a round that waits for a sink is left for the next start
        if self._query is not None:
            self._query.stop()
        self._ended.wait()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait for the end; True if the stream has ended. Raises the error with which it failed."""
        ended = self._ended.wait(timeout)
        if self._failure is not None:
            raise self._failure
        return ended

    # ---- the names of Spark's StreamingQuery -----------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The id of the checkpoint: the same in every process that continues the stream."""
        return self._checkpoint.id

    @property
    def runId(self) -> str:  # noqa: N802
        """The id of this start, which Spark's own log and UI show."""
        return str(self.spark_query.runId)

    @property
    def name(self) -> str | None:
        """The name given to `loom.start`, under which Spark's UI shows the stream."""
        return self.spark_query.name

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self.is_active

    @property
    def lastProgress(self) -> RoundProgress | None:  # noqa: N802
        return self.progress

    @property
    def recentProgress(self) -> list[RoundProgress]:  # noqa: N802
        return self.recent_progress

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        return self.await_termination(timeout)

    def processAllAvailable(self) -> None:  # noqa: N802
        self.process_all_available()

    # ---- Spark calls these --------------------------------------------------------------------------------------

    def report(self, progress: RoundProgress) -> None:
        if self._changes:
            progress, self._changes = replace(progress, changes=self._changes), ()
        self._recent.append(progress)
        if self._listener is not None:
            self._listener(progress)

    def on_batch(self, ingest: Ingest) -> Callable[[DataFrame, int], None]:
        def run(batch: DataFrame, number: int) -> None:
            with self._catching_up.standing_aside(), self._loop.lock:
                if self._is_stopping:
                    raise _StoppingError
                try:
                    with as_windloom_errors("the stream", self._asking()):
                        self._loop.run_batch(batch, number, ingest)
                except RoundStoppedError:
                    raise _StoppingError from None
                except BaseException as error:
                    self._failure = self._with_way_on(error)
                    raise _RoundFailedError(type(error).__name__) from None

        return run

    def _asking(self) -> Iterator[Query]:
        """Yield the queries of the newest plan, which is only made if somebody looks: when a round has failed."""
        yield from (planned.query for planned in self._queries.plan_of(self._newest).queries)

    def _fail(self, error: BaseException) -> None:
        """End the stream with the error of a round that was not run by Spark."""
        if self._failure is None and not self._is_stopping:
            self._failure = self._with_way_on(error)
        if self._query is not None:
            self._query.stop()

    def _with_way_on(self, error: BaseException) -> BaseException:
        """Return the error; if the user can fix it, with a hint on how to continue afterwards."""
        if not isinstance(error, WindloomError) or not self._is_durable or "same checkpoint" in error.hint:
            return error
        named, newest = _QUERY.match(error.message) or _ASKED_BY.search(error.detail), self._newest
        name = "" if named is None else named[1]
        is_added = name in newest.queries and name not in newest.declared
        otherwise = f", or start without the query (without=['{name}'], --without {name})" if is_added else ""
        hint = f"{error.hint}{otherwise}; then start again with the same checkpoint: nothing is lost"
        mendable = WindloomError(error.message, error.detail, hint)
        mendable.__cause__ = error.__cause__
        return mendable

    def follow(self, query: StreamingQuery, close: Callable[[], None]) -> None:
        """Watches Spark's query in a thread of its own, and cleans up when it ends, however it ends."""
        self._query = query
        self._catching_up.start(self._fail)

        def watch() -> None:
            try:
                with as_windloom_errors("the stream"):
                    query.awaitTermination()
                if not self._is_stopping:
                    with self._loop.lock:
                        if self._options.finish:
                            self._loop.finish()
                        else:
                            self._loop.catch_up(everything=True)  # no later micro-batch would answer the rest
            except BaseException as error:  # kept for exception() and await_termination(): a thread has no caller
                if self._failure is None and not self._is_stopping:
                    self._failure = self._with_way_on(error)
            finally:
                self._catching_up.stop()
                close()
                self._ended.set()

        threading.Thread(target=watch, name="windloom-watch", daemon=True).start()


def _told(query: Query, since: int) -> str | None:
    """Return the start of a window as text: an instant, or a position."""
    return f"row {since}" if query.window.is_of_positions else instant(since)
