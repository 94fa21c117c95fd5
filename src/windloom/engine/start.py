"""Starting a loom on streams: checkpoint, plan, sinks, history, then Spark's query."""

from __future__ import annotations

import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path

from windloom.checkpoint.checkpoint import Checkpoint
from windloom.checkpoint.json_codec import read_adapted
from windloom.checkpoint.records import PlanRecord
from windloom.checkpoint.recovery import recover, refuse_sharded
from windloom.checkpoint.staged import StagedStorage
from windloom.checkpoint.tuple_files import planned_room, refuse_without_room
from windloom.checkpoint.tuple_folder import TupleFolder, named_files
from windloom.engine.budget import LEARNED_ROUNDS, MeasuredAnswers, Scheduling
from windloom.engine.declare import match_declaration
from windloom.engine.driver import DriverPlacement
from windloom.engine.handle import Handle
from windloom.engine.live_queries import LiveQueries
from windloom.engine.loop import Listeners, RoundLoop
from windloom.engine.options import StreamOptions
from windloom.engine.progress import RoundProgress
from windloom.engine.registry import Registry
from windloom.engine.relation_versions import Relations
from windloom.engine.replanning import Adapting
from windloom.engine.results import WideTable
from windloom.engine.round import RoundTuples
from windloom.engine.row_queries import RowQueries
from windloom.engine.snapshots import TupleHistory
from windloom.errors import WindloomError, WindloomWarning, near_names
from windloom.model.stream import Stream
from windloom.optimizer.adapt.replan import Adapter
from windloom.optimizer.adapt.worker import BackgroundWorker
from windloom.optimizer.cost.constants import load_constants
from windloom.optimizer.facts import PlanningFacts, with_statistics
from windloom.optimizer.plan_cost import AnswerCost, joint_cost, tree_costs
from windloom.optimizer.stages import PlanOptions
from windloom.plan.costs import Choices
from windloom.plan.plan import Plan
from windloom.rounds.choose import AnswerUnit
from windloom.sinks.delivery import SinkWait
from windloom.sinks.registry import SinkChoice, choose_sinks
from windloom.sinks.round_rows import Outcome
from windloom.sinks.sink import Sink, SinkPlace, check_query
from windloom.sinks.tables import AnswerTables
from windloom.spark.api import DataFrame, SparkSession
from windloom.spark.collect import ingest_of
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import empty_frame
from windloom.spark.jobs import SparkDriverJobs, SparkRelationJobs, SparkRowJobs
from windloom.spark.native import tick_sql
from windloom.spark.rows.job import JobSessions
from windloom.spark.rows.stored import SparkHistory, StoredTuples
from windloom.spark.session import refuse_remote
from windloom.spark.sources.hadoop import absolute_place, storage_at
from windloom.spark.sources.offsets import SparkOffsets
from windloom.spark.untimed import warn_of_untimed
from windloom.statistics.estimates import Estimates, Memory
from windloom.weave.round_input import Watermarks


def start_stream(
    spark: SparkSession,
    registry: Registry,
    plan_options: PlanOptions,
    options: StreamOptions,
    *,
    sink: SinkChoice | Sequence[SinkChoice],
    path: str | Path | None,
    checkpoint: str | Path | None,
    history: DataFrame | Mapping[str, DataFrame] | None,
    handover: int | None,
    tables: Mapping[str, WideTable],
    query_name: str | None,
    progress: Callable[[RoundProgress], None] | None,
    learned: Estimates,
    waiting: Callable[[SinkWait | None], None] | None,
) -> Handle:
    """Start the stream and return its handle; `learned` are the estimates from earlier runs.

    A start that is refused leaves the checkpoint, and the places of sinks, as they were.
    """
    refuse_remote(spark, "a stream")
    frames = registry.streaming_frames()
    openers = choose_sinks(sink, path, checkpoint)
    before = _history_frames(spark, registry, frames, history)
    with ExitStack() as undo, as_windloom_errors("the streams"):
        checkpoint_place = _checkpoint_place(checkpoint, undo)
        storage = StagedStorage(storage_at(spark, checkpoint_place))
        refuse_sharded(storage, checkpoint_place)
        opened = Checkpoint.open(storage, {name: registry.streams[name] for name in frames}, registry.relations)
        undo.callback(opened.close)
        registry.order_columns(opened.columns)
        memory, ongoing = Memory(), options.ongoing
        for observed in opened.recent_observed(memory.rounds):
            memory.add(observed)
        queries = LiveQueries(
            registry,
            lambda: PlanningFacts(estimates=memory.estimates(trends=True).before(learned), ongoing=ongoing),
            options.objective,
            options.epsilon,
        )
        _record_plan(opened, queries, registry, plan_options, options)
        answers = AnswerTables(spark)
        sinks: dict[str, Sink] = {}
        for name, open_sink in openers.items():
            sinks[name] = open_sink(SinkPlace(spark, checkpoint_place, opened.id))
            undo.callback(sinks[name].close)
        for query in registry.queries.values():
            check_query(sinks.values(), query)
        tuples = TupleFolder(storage, checkpoint_place, {name: registry.streams[name] for name in frames})
        stored = StoredTuples(tuples, registry.streams, JobSessions(spark))
        placement = _driver_placement(spark, registry, opened, options, stored)
        recovered = recover(opened, queries.plan_of, options.snapshot_rounds)
        newest = opened.newest_plan()
        if newest is not None:
            refuse_without_room(planned_room(queries.plan_of(newest), recovered.state.kept), storage)
        tuples.keep_only(named_files(opened, recovered))
        tuples.look_for_lost(recovered.state.kept)
        loop = RoundLoop(
            queries.plan_of,
            opened,
            recovered,
            placement,
            sinks,
            answers,
            snapshot_rounds=options.snapshot_rounds,
            memory=memory,
            history=TupleHistory(SparkHistory(stored), tuples),
            adapting=_adapting(opened, queries, memory, learned, options, undo),
            sink_patience=options.sink_seconds,
            scheduling=_scheduling(opened, queries, memory, options),
            listeners=Listeners(
                stepped=partial(_warn_of_untimed, registry.streams, set()),
                done=lambda done: handle.report(done),
                waiting=lambda wait: None if waiting is None else waiting(wait),
            ),
        )
        if loop.adapting is not None:
            loop.adapting.switch = partial(_switch, loop, opened, queries)
            offsets = SparkOffsets.at(f"{checkpoint_place}/spark", [registry.streams[name] for name in frames])
            if offsets is not None:
                loop.adapting.coming = offsets.coming
        opened_sinks = list(sinks.values())
        handle = Handle(loop, opened, queries, options, opened_sinks, answers, checkpoint is not None, tables, progress)
        if handover is not None:
            frames = {name: _split_at(frame, registry.streams[name], handover, ">=") for name, frame in frames.items()}
            before = {name: _split_at(frame, registry.streams[name], handover, "<") for name, frame in before.items()}
        ingest = ingest_of(frames)
        writer = ingest.frame.writeStream.foreachBatch(handle.on_batch(ingest))
        writer = writer.option("checkpointLocation", f"{checkpoint_place}/spark")
        if query_name is not None:
            _check_name(spark, query_name)
            writer = writer.queryName(query_name)
        if options.trigger:
            writer = writer.trigger(**dict(options.trigger))  # type: ignore[call-overload]
        storage.release()  # nothing is refused from here on
        if before and loop.next_round == 0:
            loop.run(RoundTuples(before))  # what came before the stream
        elif loop.next_round > 0 and (begun := opened.begun(loop.next_round)) is not None and begun.batch is None:
            loop.finish()  # the stream was interrupted while it was being finished
        handle.follow(writer.start(), undo.pop_all().close)
        return handle


def _check_name(spark: SparkSession, name: object) -> None:
    """Raise for names that Spark would refuse, which it does when the stream is started."""
    if not isinstance(name, str) or not name.strip():
        raise WindloomError("a stream's name is text", f"it is {name!r}", "give a name, or leave it out")
    if any(query.name == name for query in spark.streams.active):
        raise WindloomError(
            f"there is a stream '{name}' already", "it runs in this session", "stop it, or give this one another name"
        )


def _warn_of_untimed(streams: Mapping[str, Stream], warned: set[str], outcome: Outcome) -> None:
    """Warn once of each stream that has tuples without a time; later ones are counted in the progress of rounds."""
    found = {name: tuples for name, tuples in outcome.untimed.items() if tuples and name not in warned}
    warned.update(found)
    warn_of_untimed(streams, found, stacklevel=2)


def _adapting(
    checkpoint: Checkpoint,
    queries: LiveQueries,
    memory: Memory,
    learned: Estimates,
    options: StreamOptions,
    undo: ExitStack,
) -> Adapting | None:
    """Return the adapting of plans, which continues with what was counted and learned before this start."""
    if options.adapt is None:
        return None
    counts, measured = read_adapted(checkpoint.recent_progress(memory.rounds))
    adapter = Adapter(memory, learned, options.adapt, options.objective, BackgroundWorker(), counts, measured)
    undo.callback(adapter.close)
    return Adapting(adapter, queries.basins)


def _switch(loop: RoundLoop, checkpoint: Checkpoint, queries: LiveQueries, choices: Choices) -> None:
    """Make the next round run with other choices, unless queries are being changed; called between two rounds."""
    if not loop.changes.acquire(blocking=False):
        return
    try:
        newest = checkpoint.newest_plan()
        if newest is not None and loop.record is not None and newest.version == loop.record.version:
            checkpoint.record_plan(queries.switched(newest, choices, checkpoint.first_free_round))
    finally:
        loop.changes.release()


def _scheduling(checkpoint: Checkpoint, queries: LiveQueries, memory: Memory, options: StreamOptions) -> Scheduling:
    """Return the scheduling, which decides what rounds answer, with what earlier rounds have shown of their costs."""

    def costs(plan: Plan, units: Sequence[AnswerUnit]) -> Sequence[AnswerCost]:
        costs_of_trees = tree_costs(with_statistics(plan, queries.known()), load_constants())
        return [joint_cost(costs_of_trees, unit.trees) for unit in units]

    def round_seconds() -> float:
        lengths = [
            stream_estimate.round.value
            for stream_estimate in memory.estimates().streams.values()
            if stream_estimate.round is not None
        ]
        return min(lengths, default=options.ongoing.round_seconds)

    scheduling = Scheduling(costs, options.budget_seconds, options.schedule, round_seconds)
    for progress in checkpoint.recent_progress(LEARNED_ROUNDS):
        if "answering" in progress:
            scheduling.learned.add(MeasuredAnswers.from_json(progress["answering"]))
    return scheduling


def _checkpoint_place(checkpoint: str | Path | None, undo: ExitStack) -> str:
    """Return the absolute path of the checkpoint; without one, a directory that is deleted when the stream ends."""
    if checkpoint is not None:
        return absolute_place(checkpoint)
    folder = tempfile.mkdtemp(prefix="windloom-")
    undo.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _driver_placement(
    spark: SparkSession, registry: Registry, checkpoint: Checkpoint, options: StreamOptions, stored: StoredTuples
) -> DriverPlacement:
    watermarks = Watermarks(registry.streams, time.monotonic, options.idle_seconds)
    relations = Relations(registry.current_versions(), SparkRelationJobs())
    jobs = SparkDriverJobs(spark, registry.streams, options.untimed == "skip")
    return DriverPlacement(jobs, checkpoint, watermarks, RowQueries(SparkRowJobs(stored), stored.folder), relations)


def _record_plan(
    checkpoint: Checkpoint,
    queries: LiveQueries,
    registry: Registry,
    plan_options: PlanOptions,
    options: StreamOptions,
) -> None:
    """Write the first plan record of a checkpoint, or one more if the program's queries or options have changed.

    Queries that were added or removed through a handle stay so: only what the program itself changed is taken over, and
    queries that it names are left out.
    """
    declared = {name: query.text for name, query in registry.queries.items()}
    chosen = {name: str(value) for name, value in asdict(plan_options).items()}
    wanted = {**chosen, "history_ticks": str(options.keep_ticks)}
    newest = checkpoint.newest_plan()
    if newest is None:
        record = queries.first(declared, wanted)
    else:
        before = newest.declared
        is_renamed = not {*before.values()}.isdisjoint(declared.values())
        if before and declared and not before.keys() & declared.keys() and not is_renamed:
            raise WindloomError(
                "the checkpoint belongs to another catalog",
                f"none of its {len(before):,} queries, such as '{next(iter(before))}', is registered here",
                "give this catalog a checkpoint of its own; or register one of those queries once more for this start",
            )
        put = {name: text for name, text in declared.items() if before.get(name) != text}
        gone = [name for name in before if name not in declared and name in newest.queries]
        gone += [name for name in _left_out(options, newest, declared) if name not in gone]
        if not put and not gone and dict(newest.options) == wanted:
            return
        record = queries.following(
            newest,
            newest.version + 1,
            checkpoint.first_free_round,
            put=put,
            remove=gone,
            declared=declared,
            options=wanted,
        )
    if not record.queries:
        raise WindloomError(
            "there is no query to answer",
            "no query is registered, and the checkpoint has none that was added",
            "register one: loom.query(name, 'SELECT …'), or CREATE QUERY in the catalog",
        )
    checkpoint.record_plan(record)


def _left_out(options: StreamOptions, newest: PlanRecord, declared: Mapping[str, str]) -> list[str]:
    """Return the queries of the checkpoint that this start drops."""
    for name in options.without:
        if name in declared:
            raise WindloomError(
                f"the stream cannot go on without query '{name}'",
                "it is registered here, and would be added again",
                "remove it from the catalog, or from the program",
            )
        if name not in newest.queries:
            message = f"there is no query '{name}' to go on without: {near_names(name, list(newest.queries))}"
            warnings.warn(message, WindloomWarning, stacklevel=2)
    return [name for name in dict.fromkeys(options.without) if name in newest.queries]


def _history_frames(
    spark: SparkSession,
    registry: Registry,
    frames: Mapping[str, DataFrame],
    history: DataFrame | Mapping[str, DataFrame] | None,
) -> dict[str, DataFrame]:
    """Return one batch frame per stream, empty for a stream without history; none at all without history."""
    if history is None:
        return {}
    if isinstance(history, DataFrame):
        if len(frames) > 1:
            raise WindloomError(
                "history is one DataFrame, and there are several streams",
                f"they are {', '.join(frames)}",
                f"say whose it is: history={{'{next(iter(frames))}': df}}",
            )
        history = {next(iter(frames)): history}
    for name, frame in history.items():
        if name not in frames:
            raise WindloomError(
                f"there is no stream '{name}' to give a history to",
                f"{len(frames)} are registered",
                near_names(name, list(frames)),
            )
        if frame.isStreaming:
            raise WindloomError(
                f"the history of stream '{name}' is a streaming DataFrame",
                "history is what lies before the stream, and it ends",
                "read it with spark.read",
            )
    return {
        name: match_declaration(registry.streams[name], history[name])
        if name in history
        else empty_frame(spark, registry.streams[name])
        for name in frames
    }


def _split_at(frame: DataFrame, stream: Stream, handover: int, side: str) -> DataFrame:
    """Return tuples on a side of the hand-over; tuples without a time are the stream's, where `untimed` applies."""
    tick = tick_sql(stream)
    return frame.where(f"{tick} {side} {handover}L" + (f" OR {tick} IS NULL" if side == ">=" else ""))
