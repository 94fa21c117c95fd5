"""Loom: register streams and queries, see the plan, run it, check it against Spark itself.

The module is long because users meet one class: nearly every method only checks, documents and hands over. What only
some calls need, such as streams or pictures, is imported by these calls.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from windloom.engine.declare import read_stream, with_urgency
from windloom.engine.registry import Registry
from windloom.engine.results import ObservedData, Results, WideTable, unknown_query
from windloom.engine.views import Picture, charts_as, check_view, cost_view, picture_of
from windloom.errors import WindloomError, WindloomWarning
from windloom.model.aggregate import UserDefined
from windloom.model.query import Query
from windloom.model.stream import Relation, Stream
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.rows import TooManyPairsError
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.costs import SharingReport
from windloom.plan.plan import Plan
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.native import counted_rate
from windloom.spark.session import is_session, local_session
from windloom.spark.untimed import warn_of_untimed
from windloom.statistics.set_statistics import Ongoing

if TYPE_CHECKING:
    from windloom.engine.handle import Handle
    from windloom.engine.progress import RoundProgress
    from windloom.engine.what_if import WhatIf
    from windloom.sinks.delivery import SinkWait
    from windloom.sinks.registry import SinkChoice
    from windloom.spark.verify.verify import Verification

#: Called with a line of text when a stage of a long run begins.
Progress = Callable[[str], None]


class Loom:
    """Weaves queries over streams into one shared plan and runs it on the given Spark session.

    >>> loom = Loom(spark)                                                              # doctest: +SKIP
    >>> loom.stream("trades", df, time="ts", delay="10 seconds")                        # doctest: +SKIP
    >>> loom.query("avg_1h", "SELECT symbol, avg(price) AS p FROM trades [RANGE 1 hour SLIDE 1 minute] GROUP BY symbol")
    ...                                                                                 # doctest: +SKIP
    >>> loom.run()["avg_1h"].show()                                                     # doctest: +SKIP
    """

    def __init__(self, spark: SparkSession | Callable[[], SparkSession]) -> None:
        """`spark` is the session to run on, or a function that returns one, called once when it is first needed.

        On a session of Spark Connect, `run` and `answers` work as elsewhere; `start` needs a classic one.
        """
        if not is_session(spark) and not callable(spark):
            raise WindloomError(
                "a loom needs a Spark session",
                f"it was given {spark!r}",
                "Loom(spark), or Loom.local() for one of its own",
            )
        self._spark = spark
        self._registry = Registry(lambda: self.spark)
        self._plans: dict[tuple[PlanOptions, bool], Plan] = {}
        self._last: Results | None = None
        self._learned = ObservedData()
        self._tables: dict[str, WideTable] = {}
        self._handles: WeakSet[Handle] = WeakSet()

    @classmethod
    def local(cls, cores: int | str = "*", memory: str | None = None, conf: Mapping[str, str] | None = None) -> Loom:
        """Return a loom on a Spark session of this machine, which is started if there is none yet."""
        return cls(local_session(cores=cores, memory=memory, conf=conf))

    @property
    def spark(self) -> SparkSession:
        if not is_session(self._spark):
            self._spark = self._spark()  # type: ignore[operator]
        return self._spark  # type: ignore[return-value]

    def stream(
        self,
        name: str,
        df: DataFrame | str | Path,
        time: str | None = None,
        delay: str | timedelta | None = None,
        unit: str | None = None,
        rate: float | None = None,
        *,
        replace: bool = False,
    ) -> Stream:
        """Register a DataFrame as a stream, or the path of a file or directory that is to be read as one.

        `time` is its event-time column: a timestamp, or an integer with `unit` "s", "ms" or "us". `delay` is how late
        tuples may come, `rate` how many come per second; the plan uses both. Settings of the stream in a loaded catalog
        apply unless they are given here, and so do the column and the delay of `df.withWatermark`.

        Registered again, as when a cell of a notebook runs twice, the stream is read from the new DataFrame. Other
        columns or settings are an error, unless `replace` is True.
        """
        df = read_stream(self.spark, name, df, self.streams) if isinstance(df, (str, Path)) else df
        self._refuse_while_running(name, replace)
        stream = self._registry.add_stream(name, df, time, delay, unit, rate, replace=replace)
        self._changed()
        return stream

    def relation(
        self,
        name: str,
        given: DataFrame | Callable[[], DataFrame],
        *,
        retroactive: bool | None = None,
        replace: bool = False,
    ) -> Relation:
        """Register a table that queries join with streams: a DataFrame, or a function that returns the current one.

        A DataFrame is read once, and stays as it is. A function is called in every round that needs the relation. Each
        time it may return another DataFrame with the same columns; if it returns the same one, nothing is read again.

        Windows see the version of the round in which they close. With `retroactive=False`, every tuple is joined with
        the version of the round in which it comes in, and later versions do not change it. The setting in a loaded
        catalog applies unless it is given here. Registered again, it is like a stream that is.
        """
        self._refuse_while_running(name, replace)
        relation = self._registry.add_relation(name, given, retroactive, replace=replace)
        self._changed()
        return relation

    def query(
        self,
        name: str,
        asked: str | DataFrame,
        *,
        within: str | timedelta | None = None,
        priority: int | None = None,
        replace: bool = False,
    ) -> Query:
        """Register a query. If the text is wrong, raises a WindloomError that shows the line, the column and a fix.

        The same query again is no error; another one of that name is, unless `replace` is True.

        A query is a text, or a DataFrame that groups by `window()` or `session_window()`, batch or streaming, which is
        read and not run. What it reads becomes a stream, which is shared by all DataFrames that read the same.

        `within` and `priority` say how urgent its answers are, as `WITHIN 30 seconds PRIORITY 2 AS SELECT …` does:
        where rounds have a budget, a lower priority comes first, then the earliest deadline.
        """
        if isinstance(asked, DataFrame):
            urgent = partial(with_urgency, name, within=within, priority=priority)
            query = self._registry.add_frame(name, asked, urgent, replace=replace)
        else:
            query = self._registry.add_query(name, with_urgency(name, asked, within, priority), replace=replace)
        self._changed()
        return query

    def aggregate(
        self,
        name: str,
        *,
        lift: Callable[..., Any],
        combine: Callable[..., Any],
        lower: Callable[..., Any],
        neutral: Any,
        inverse: Callable[..., Any] | None = None,
        properties: Sequence[str] = ("associative", "commutative"),
        argument: str = "double",
        replace: bool = False,
    ) -> UserDefined:
        """Define an aggregate in Python, for queries to call by its name.

        `lift(x)` makes a value from an argument, `combine(a, b)` makes one value from two, and `lower(value)` makes the
        answer; combining with `neutral` changes nothing. A value is a number or a NamedTuple of numbers. Numba compiles
        the functions, and they are checked on sample values: `combine` must be associative and commutative.
        `inverse(whole, part)` removes a part again, exactly, and makes windows over whole numbers cheaper. `properties`
        may also claim "selective": `combine` returns one of its two values. `argument` is "double" or "bigint".
        """
        from windloom.aggregates.define import define_aggregate

        aggregate = define_aggregate(
            name,
            lift=lift,
            combine=combine,
            lower=lower,
            neutral=neutral,
            inverse=inverse,
            properties=properties,
            argument=argument,
        )
        self._registry.add_aggregate(aggregate, replace=replace)
        if replace:
            self._changed()
        return aggregate

    def table(self, name: str, by: str | Sequence[str], queries: Sequence[str]) -> None:
        """Declare a wide table: one row per key, the latest answers of many queries as columns, as of one watermark.

        `by` names the grouping columns, which all the queries must have. Read the table with `results.table(name)`
        after a run, or with `handle.table(name)` while a stream runs.
        """
        self._tables[name] = WideTable.of(name, by, queries, self.queries)

    def drop(self, name: str) -> None:
        """Remove the query, stream, relation, aggregate or wide table of this name; what others still read is refused.

        A running stream keeps its queries: `handle.remove` removes one of them.
        """
        tables = [table for table, wide in self._tables.items() if name in [query.name for query in wide.queries]]
        if name in self._tables:
            del self._tables[name]
            return
        if tables:
            raise WindloomError(
                f"query '{name}' cannot be dropped",
                f"the wide table '{tables[0]}' shows its answers",
                f"drop the table first: loom.drop('{tables[0]}')",
            )
        self._refuse_while_running(name, name not in self.queries)
        self._registry.drop(name)
        self._changed()

    def _refuse_while_running(self, name: str, changes: bool) -> None:
        """Refuse to change a source that a running stream of this loom reads."""
        if changes and name in self._registry.sources and any(handle.is_active for handle in self._handles):
            raise WindloomError(
                f"{self._registry.sources[name].title} cannot be changed now",
                "a stream of this loom is running",
                "stop it first: handle.stop()",
            )

    def load(self, path: str | Path, *, queries: bool = True, replace: bool = False) -> None:
        """Register the streams, relations and queries of a catalog; data come from `loom.stream` and `loom.relation`.

        If any statement is wrong, nothing is registered. With `queries=False`, only streams and relations are. The same
        catalog again is no error; with `replace`, what has changed in it replaces what it created before.
        """
        if replace:
            for name in self._registry.sources:
                self._refuse_while_running(name, replace)
        self._registry.load(path, with_queries=queries, replace=replace)
        self._changed()

    @property
    def streams(self) -> Mapping[str, Stream]:
        return self._registry.streams

    @property
    def relations(self) -> Mapping[str, Relation]:
        return self._registry.relations

    @property
    def queries(self) -> Mapping[str, Query]:
        return self._registry.queries

    def plan(
        self,
        strategy: str = "auto",
        slicing: str = "pairs",
        technique: str = "auto",
        intake: str = "auto",
        joins: str = "auto",
        fold: str = "auto",
    ) -> Plan:
        """Return the plan for all registered queries; it is made once for the same queries and options."""
        return self._plan(PlanOptions(strategy, slicing, technique, intake, joins, fold))

    def _plan(self, options: PlanOptions, *, reads_files: bool = True) -> Plan:
        """Return the plan for these options; without `reads_files`, Spark reads all data."""
        key = options, reads_files
        if key not in self._plans:
            self._check_queries()
            types, sources = self._registry.types(), self._registry.sources
            known = self._known() if reads_files else self._learned.known
            self._plans[key] = make_plan(sources, self.queries.values(), types, options, known)
        return self._plans[key]

    def _plan_of_counted(self, options: PlanOptions, refused: TooManyPairsError) -> Plan:
        """Return the plan for the tuples that there are, which a job counts, stream by stream."""
        longest = max(query.window.range_ticks for query in self.queries.values())
        counts, sources = {}, dict(self._registry.sources)
        for name in {name for query in self.queries.values() for name in query.streams}:
            stream, frame = self.streams[name], self._registry.bounded(name)
            if frame is None:
                raise refused
            counts[name], rate = counted_rate(frame, stream, longest)
            sources[name] = replace(stream, events_per_second=rate)
        try:
            return make_plan(sources, self.queries.values(), self._registry.types(), options, self._known())
        except TooManyPairsError as error:
            counted = ", ".join(f"{name}: {count:,}" for name, count in sorted(counts.items()))
            fact = f"{error.detail.partition(';')[0]}; tuples counted of {counted}"
            raise TooManyPairsError(error.message, fact, error.hint.partition(", or tell")[0]) from None

    def _check_queries(self) -> None:
        if not self.queries:
            raise WindloomError(
                "there is no query to plan",
                f"{len(self.streams)} streams are registered, and no query reads them",
                "register one: loom.query(name, 'SELECT …'), or CREATE QUERY in the catalog",
            )

    def explain(
        self,
        format: str = "text",
        *,
        query: str | None = None,
        queries: bool = False,
        sharing: bool = False,
        cost: str = "seconds",
        strategy: str = "auto",
        slicing: str = "pairs",
        technique: str = "auto",
        intake: str = "auto",
        joins: str = "auto",
        fold: str = "auto",
    ) -> str:
        """Show the plan; `format` is "text", "json" or "svg" (a picture). `loom.plan()` returns the plan itself.

        `query` shows one query in full, `queries` lists all queries, however many there are. `sharing` shows what every
        tree and query is predicted to cost, what sharing saves, and why queries were not put together. `cost` is
        "seconds", as predicted, or "paper": operations, as the papers on sharing count them.
        """
        from windloom.explain.json import explain_json
        from windloom.explain.picture.picture import explain_svg
        from windloom.explain.sharing import sharing_json, sharing_text
        from windloom.explain.text import explain_text

        check_view(cost, format, query, sharing=sharing)
        plan = self.plan(strategy, slicing, technique, intake, joins, fold)
        if query is not None and query not in self.queries:
            raise unknown_query(query, list(self.queries))
        costs = cost_view(plan, cost, self._learned.known.in_force())
        match format:
            case "text":
                if sharing:
                    return sharing_text(plan, self._report(plan), all_queries=queries)
                return explain_text(plan, costs, all_queries=queries, query=query)
            case "json":
                as_data = explain_json(plan, costs)
                if sharing:
                    as_data["sharing"] = sharing_json(plan, self._report(plan))
                return json.dumps(as_data, indent=2, ensure_ascii=False)
            case "svg":
                return Picture(explain_svg(plan, costs))
        raise WindloomError(
            f"unknown format '{format}'", "a plan is text, data or a picture", "use 'text', 'json' or 'svg'"
        )

    def chart(
        self,
        format: str = "text",
        *,
        parts: int = 10,
        dimensions: int = 3,
        partition: str = "geometric",
        objective: str | Mapping[str, float] = "latency",
        strategy: str = "auto",
        slicing: str = "pairs",
        technique: str = "auto",
        intake: str = "auto",
        joins: str = "auto",
        fold: str = "auto",
    ) -> str:
        """Draw charts, which show which plan is best for which estimates.

        They are drawn around figures that were given, observed by runs, or learned from a stream's checkpoint
        (`loom.learn`), whose last rounds are a path in them. `format` is "text", "json" or "svg" (a picture).
        """
        from windloom.optimizer.adapt.basins import basins_of
        from windloom.optimizer.adapt.chart_views import charts_around
        from windloom.optimizer.adapt.charts import ChartOptions
        from windloom.optimizer.adapt.objective import Objective

        options = PlanOptions(strategy, slicing, technique, intake, joins, fold)
        self._check_queries()
        known = PlanningFacts(ongoing=self._learned.ongoing or Ongoing(), versions=self._learned.versions)
        basins = basins_of(self._registry.sources, self.queries.values(), self._registry.types(), options, known)
        charts = charts_around(
            basins,
            self._learned.estimates,
            self._learned.rounds,
            ChartOptions(parts, dimensions, partition),
            Objective.of(objective),
        )
        return charts_as(format, charts)

    def run(
        self,
        strategy: str = "auto",
        *,
        placement: str = "auto",
        slicing: str = "pairs",
        technique: str = "auto",
        intake: str = "auto",
        joins: str = "auto",
        fold: str = "auto",
        out: str | Path | None = None,
        buckets: int | None = None,
        untimed: str = "skip",
        memory: str | int | None = None,
        progress: Progress | None = None,
    ) -> Results:
        """Answer every query over the registered (batch) DataFrames, as one round with every frontier at +∞.

        `placement` says who makes the answers: "driver", "executors" (the Spark operator behind `answers`, with groups
        divided into `buckets`; all answers come from one Spark job), or "auto" (by size).
        `intake` says how tuples become partials: "woven" (by compiled kernels), "native" (by Spark's own aggregation)
        or "auto" (by predicted cost). `joins` says which sides of joins Spark aggregates early, with a bit for each
        side: "LAP" is none, "EAP" all, "EAP10" the first of two. `fold` says how the sides of joins are multiplied:
        "pairwise", "slice_matrix" or "recalculate".
        With `out`, the answers go to Parquet in that directory, block by block, and are not kept in memory. Without it,
        `memory` bounds what the driver keeps of them, for example "2 GiB": a run whose answers are larger fails.
        Rows without a usable time are in no window, as in Spark: they are left out, counted in `results.stats`, and a
        warning says how many there are. `untimed="stop"` refuses them.
        """
        from windloom.answers.blocks import Stopwatch
        from windloom.engine.batch import run_batch

        say, watch = progress or (lambda line: None), Stopwatch()
        say(f"planning {len(self.queries):,} {'query' if len(self.queries) == 1 else 'queries'}")
        options = PlanOptions(strategy, slicing, technique, intake, joins, fold)
        with watch("plan"):
            try:
                plan = self._plan(options, reads_files=placement != "executors")
            except TooManyPairsError as error:  # by rates that may be assumed; the tuples are there to be counted
                say("counting tuples, because a join would make many pairs")
                plan = self._plan_of_counted(options, error)
            frames = self._registry.frames(plan)
        results = run_batch(
            self.spark,
            plan,
            frames,
            self._registry.current_versions(),
            self._registry.files(),
            placement=placement,
            buckets=buckets,
            untimed=untimed,
            out=None if out is None else Path(out),
            memory=memory,
            watch=watch,
            progress=say,
        )
        warn_of_untimed(self.streams, results.untimed, stacklevel=2)
        results.tables = dict(self._tables)
        results.schemas = self._registry.schemas
        self._last = results
        if self._learned.add(results):
            self._plans.clear()
        return results

    def answers(
        self,
        query: str | None = None,
        *,
        strategy: str = "auto",
        slicing: str = "pairs",
        technique: str = "auto",
        joins: str = "auto",
        fold: str = "auto",
        intake: str = "auto",
        buckets: int | None = None,
    ) -> DataFrame:
        """Return the answers of a query as a DataFrame, computed by one Spark operator; streaming if its streams are.

        It is an ordinary DataFrame: write it with `writeStream`, join it with other tables, on any cluster and to any
        sink. Its columns are those of `results[query]`; of a query that was given as a DataFrame, exactly its schema.
        State lies in Spark's own state store, and windows close in the micro-batch that brings the data.

        Without `query`, the answers of all queries are in one frame, with the column `query` before the others; a
        column is NULL in rows of queries that do not have it. Only queries that are asked for together share work.

        `intake` says how tuples reach Spark's tasks: "files" (by name, and tasks read them), "spark" (as rows that
        Spark has read), or "auto" (by name where the data are plain files of this machine). State is divided into
        `buckets` by the hash of the group; a checkpoint keeps the number that it was started with.
        """
        from windloom.engine.answers import answers_of

        if query is not None and query not in self.queries:
            raise unknown_query(query, list(self.queries))
        self._check_queries()
        options = PlanOptions(strategy, slicing, technique, "woven", joins, fold)
        queries = self.queries.values() if query is None else [self.queries[query]]
        plan = make_plan(self._registry.sources, queries, self._registry.types(), options, PlanningFacts())
        frames = self._registry.data_of(plan)
        schema = None if query is None else self._registry.schemas.get(query)
        return answers_of(self.spark, plan, frames, query, intake=intake, buckets=buckets, schema=schema)

    def start(
        self,
        sink: SinkChoice | Sequence[SinkChoice] = "parquet",
        *,
        path: str | Path | None = None,
        checkpoint: str | Path | None = None,
        trigger: Mapping[str, object] | None = None,
        strategy: str = "auto",
        slicing: str = "pairs",
        technique: str = "auto",
        intake: str = "auto",
        joins: str = "auto",
        fold: str = "auto",
        history: DataFrame | Mapping[str, DataFrame] | None = None,
        handover: str | datetime | None = None,
        keep: str | timedelta | None = None,
        keep_tuples: str | timedelta | None = None,
        idle_after: str | timedelta | None = None,
        finish: bool = False,
        untimed: str = "skip",
        snapshot_rounds: int = 10,
        placement: str = "driver",
        sink_patience: str | timedelta | None = None,
        adapt: bool | str | Mapping[str, object] = True,
        objective: str | Mapping[str, float] = "latency",
        budget: str | timedelta | None = None,
        schedule: str | None = None,
        without: Sequence[str] = (),
        name: str | None = None,
        progress: Callable[[RoundProgress], None] | None = None,
        waiting: Callable[[SinkWait | None], None] | None = None,
    ) -> Handle:
        """Answer every query over the registered streaming DataFrames, round by round, exactly once.

        `sink` is "parquet" or "delta" (to `path`), "memory", "live" (the latest answer of every group), a sink with
        options (`windloom.sink("postgres", url)`), a function that is called with a DataFrame and the round's number,
        or several of these. Everything that must survive a crash is under `checkpoint`: started again with the same
        checkpoint, the stream continues where it stopped.

        A round waits for a sink that is down, at most for `sink_patience` (10 minutes); then the stream fails, and
        nothing is lost. `waiting` is called at every attempt while a round waits, and with None when it continues.

        `history` is a batch DataFrame that is answered before the stream. With `handover`, an instant, tuples before it
        come from the history, and tuples from it on come from the stream. `keep` is how long past input is kept as
        partials, for questions and later queries; `keep_tuples` is how long the tuples themselves are kept, from which
        any question can be answered. A stream that is silent for `idle_after` does not hold back queries that also read
        other streams. `finish` answers the windows that are still open when a stream with trigger availableNow has
        ended. Tuples without a usable time are left out and counted, and the first ones are warned of; with
        `untimed="stop"`, the stream fails instead.

        The state is in the memory of the driver, which is the only `placement`. For states too large for it there is
        `loom.answers().writeStream`, with state on executors, in Spark's own store.

        Plans follow what rounds observe, unless `adapt` is False: between rounds, plans are made again. With
        `adapt="charts"` they are looked up in charts instead, and `adapt={"parts": 20}` cuts these more finely. With
        `adapt={"epsilon": 0.05}` they follow queries alone, and are made again when they cost 5 % above expectation.
        Plans are chosen for the `objective`: "latency", "memory", or weights such as {"latency": 0.4, "memory": 0.6}.

        `budget` is how long a round may take. A round that would take longer answers the most urgent queries, by
        priority and deadline (`CREATE QUERY … WITHIN 30 seconds PRIORITY 2 AS …`), and leaves the rest to later rounds:
        these answers are late, but each row still comes once and is the same. `schedule` says what is answered
        together: "late_pending", "late", "hybrid", "conservative", "aggressive" or "edf".

        `without` names queries that were added while the stream ran, and that it goes on without. `name` is how Spark's
        UI calls the stream.
        """
        from windloom.engine.options import StreamOptions, parse_instant
        from windloom.engine.start import start_stream

        options = StreamOptions.of(
            trigger,
            finish=finish,
            idle_after=idle_after,
            keep=keep,
            keep_tuples=keep_tuples,
            untimed=untimed,
            snapshot_rounds=snapshot_rounds,
            placement=placement,
            sink_patience=sink_patience,
            adapt=adapt,
            objective=objective,
            budget=budget,
            schedule=schedule,
            without=without,
        )
        handle = start_stream(
            self.spark,
            self._registry,
            PlanOptions(strategy, slicing, technique, intake, joins, fold, options.tuple_ticks),
            options,
            sink=sink,
            path=path,
            checkpoint=checkpoint,
            history=history,
            handover=None if handover is None else parse_instant("handover", handover),
            tables=dict(self._tables),
            query_name=name,
            progress=progress,
            learned=self._learned.estimates.without_rounds(),
            waiting=waiting,
        )
        self._handles.add(handle)
        for warning in handle.warnings:
            warnings.warn(warning, WindloomWarning, stacklevel=2)
        return handle

    def learn(self, checkpoint: str | Path) -> list[str]:
        """From now on, make plans with what the rounds of a stream have observed, read from its checkpoint.

        The stream may be running. Nothing runs here; `explain` then shows the plan for rounds like the last ones.
        Returns the names of files that were left out because they are damaged.
        """
        from windloom.checkpoint.checkpoint import Checkpoint
        from windloom.checkpoint.storage import LocalStorage
        from windloom.spark.sources.hadoop import absolute_place, is_remote, storage_at

        checkpoint_place = absolute_place(checkpoint)
        storage = (
            storage_at(self.spark, checkpoint_place)
            if is_remote(checkpoint_place)
            else LocalStorage(Path(checkpoint_place))
        )
        damaged = self._learned.read(Checkpoint.read_only(storage, checkpoint_place), str(checkpoint))
        self._plans.clear()
        return damaged

    def what_if(
        self,
        text: str,
        *,
        strategy: str = "auto",
        slicing: str = "pairs",
        technique: str = "auto",
        intake: str = "auto",
        joins: str = "auto",
        fold: str = "auto",
    ) -> WhatIf:
        """Return what a query would cost in addition to the registered ones, before it is added.

        The plan with it and the plan without it are predicted; neither runs.
        """
        from windloom.engine.what_if import compare_plans, unused_name

        options = PlanOptions(strategy, slicing, technique, intake, joins, fold)
        query = self._registry.bind(unused_name(self.queries), text)
        before = self.plan(strategy, slicing, technique, intake, joins, fold) if self.queries else None
        types, sources = self._registry.types(), self._registry.sources
        known = self._known()
        after = make_plan(sources, [*self.queries.values(), query], types, options, known)
        return compare_plans(before, after, query, known.in_force(), known.files)

    def verify(self, name: str, results: Results | None = None) -> Verification:
        """Recompute a query with Spark's own `window()`, or by the DataFrame it was given as, and compare every row.

        Compares `results`, or those of the last run; runs the loom first if it has not run yet.
        """
        from windloom.spark.verify.verify import verify_query
        from windloom.spark.verify.written import verify_frame

        if name not in self.queries:
            raise unknown_query(name, list(self.queries))
        results = results or self._last or self.run()
        if (asked := self._registry.asked.get(name)) is not None and not self.queries[name].is_approximate:
            return verify_frame(name, asked, results.arrow(name))
        frames = {**self._registry.frames(results.plan), **results.relations}
        return verify_query(self.queries[name], self._registry.sources, frames, results.rows(name))

    def _report(self, plan: Plan) -> SharingReport:
        from windloom.optimizer.sharing_report import report_sharing

        known = self._known()
        return report_sharing(plan, known.in_force(), known.files)

    def _known(self) -> PlanningFacts:
        """Return what plans are made with, including the columns that the driver can read from files."""
        known, streams = self._learned.known, self._registry.streams
        if self._learned.ongoing is not None:  # the driver reads no files of a running stream
            return known
        files = self._registry.files()
        return replace(known, files={name: files[name].columns(streams[name].columns) for name in files})

    def _changed(self) -> None:
        self._plans.clear()
        self._last = None

    def _repr_html_(self) -> str:
        return picture_of(self.plan()) if self.queries else "<p>a loom without queries</p>"

    def __repr__(self) -> str:
        return f"<Loom: {len(self.queries)} queries over {len(self.streams)} streams>"
