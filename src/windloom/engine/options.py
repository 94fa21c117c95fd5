"""The options a loom is started with, checked before anything runs; and budgets and deadlines in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta

from windloom.engine.budget import DeadlineRecord, Scheduling
from windloom.errors import WindloomError, near_names
from windloom.model.formatting import count
from windloom.model.query import Query
from windloom.model.time import TICKS_PER_SECOND, format_duration, parse_duration
from windloom.optimizer.adapt.charts import ChartOptions
from windloom.optimizer.adapt.objective import Objective
from windloom.optimizer.adapt.replan import AdaptOptions
from windloom.optimizer.sharing.incremental_plan import DEFAULT_TOLERANCE, check_tolerance
from windloom.rounds.schedules import DEFAULT_SCHEDULE, find_schedule
from windloom.sinks.delivery import PATIENCE_SECONDS, duration_words
from windloom.spark.untimed import check_untimed
from windloom.statistics.set_statistics import GIVEN, Ongoing

TRIGGERS = ("availableNow", "processingTime")
_TICKS_PER_MILLISECOND = TICKS_PER_SECOND // 1000


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """`keep` is how long (in ticks) past input is kept for questions and later queries; `untimed` says whether a
    tuple without a usable time is left out and counted, or stops the stream. `sink_seconds` is how long a round waits
    for a sink that is down. Plans are chosen for the `objective`, and follow what rounds observe, as `adapt` says; if
    it is None, plans stay as they are until queries change, and are then made again if they cost more than `epsilon`
    above what is expected. `budget_seconds` is how long a round may take, None for no limit; `schedule` says what a
    round answers first if the budget does not suffice. `tuple_ticks` is how long tuples are kept beyond what row
    queries need. `without` are queries of the checkpoint that this start drops.
    """

    trigger: Mapping[str, object] = field(default_factory=dict)
    finish: bool = False
    idle_seconds: float | None = None
    keep_ticks: int = 0
    untimed: str = "skip"
    snapshot_rounds: int = 10
    sink_seconds: float = PATIENCE_SECONDS
    adapt: AdaptOptions | None = field(default_factory=AdaptOptions)
    epsilon: float = DEFAULT_TOLERANCE
    objective: Objective = field(default_factory=Objective)
    budget_seconds: float | None = None
    schedule: str = DEFAULT_SCHEDULE
    tuple_ticks: int = 0
    without: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        trigger: Mapping[str, object] | None,
        *,
        finish: bool,
        idle_after: str | timedelta | None,
        keep: str | timedelta | None,
        untimed: str,
        snapshot_rounds: int,
        placement: str = "driver",
        sink_patience: str | timedelta | None = None,
        adapt: bool | str | Mapping[str, object] = True,
        objective: str | Mapping[str, float] = "latency",
        budget: str | timedelta | None = None,
        schedule: str | None = None,
        keep_tuples: str | timedelta | None = None,
        without: Sequence[str] = (),
    ) -> StreamOptions:
        trigger = _checked_trigger(trigger)
        if finish and "availableNow" not in trigger:
            raise WindloomError(
                "finish=True needs a stream that ends",
                f"the trigger is {dict(trigger) or 'the default: whenever there is data'}",
                'trigger={"availableNow": True}, or leave finish out',
            )
        check_untimed(untimed)
        if not _is_count(snapshot_rounds):
            raise WindloomError(
                f"a snapshot cannot be taken every {snapshot_rounds!r} rounds",
                "snapshots bound how much of the log a restart reads",
                "give a positive number of rounds",
            )
        _check_placement(placement)
        idle = None if idle_after is None else _ticks("idle_after", idle_after) / TICKS_PER_SECOND
        keep_ticks = 0 if keep is None else _ticks("keep", keep)
        patience = PATIENCE_SECONDS
        if sink_patience is not None:
            patience = _ticks("sink_patience", sink_patience) / TICKS_PER_SECOND
        seconds, chosen = _budget(budget, schedule)
        return cls(
            trigger,
            finish,
            idle,
            keep_ticks,
            untimed,
            snapshot_rounds,
            patience,
            *_adapting(adapt),
            Objective.of(objective),
            seconds,
            chosen,
            0 if keep_tuples is None else _ticks("keep_tuples", keep_tuples),
            (without,) if isinstance(without, str) else tuple(without),
        )

    @property
    def ongoing(self) -> Ongoing:
        """What is known about rounds before any has run."""
        history, seconds = self.keep_ticks / TICKS_PER_SECOND, self.trigger_seconds
        return Ongoing(seconds, GIVEN, history) if seconds else Ongoing(history_seconds=history)

    @property
    def trigger_seconds(self) -> float:
        """The least number of seconds between the starts of two rounds; 0 if rounds start when there is data."""
        interval = self.trigger.get("processingTime")
        return 0.0 if interval is None else _ticks("processingTime", str(interval)) / TICKS_PER_SECOND


def _budget(budget: str | timedelta | None, schedule: str | None) -> tuple[float | None, str]:
    """Return the budget in seconds (None without one), and the schedule."""
    if schedule is not None:
        find_schedule(schedule)
    if budget is None:
        if schedule is not None:
            raise WindloomError(
                f"schedule '{schedule}' is not used",
                "it says what a round answers first if its budget does not suffice, and there is none",
                "give a budget, such as budget='2 seconds', or leave the schedule out",
            )
        return None, DEFAULT_SCHEDULE
    ticks = _ticks("budget", budget)
    if ticks == 0:
        raise WindloomError(
            "a budget of no time is none", "nothing could be answered", "for example budget='2 seconds'"
        )
    return ticks / TICKS_PER_SECOND, schedule or DEFAULT_SCHEDULE


def _checked_trigger(trigger: object) -> Mapping[str, object]:
    if trigger is None:
        return {}
    if not (
        isinstance(trigger, Mapping)
        and len(trigger) == 1
        and next(iter(trigger)) in TRIGGERS
        and trigger.get("availableNow", True) is True
    ):
        raise WindloomError(
            f"unknown trigger {trigger!r}",
            "it says when Spark forms a micro-batch",
            'use {"availableNow": True} or {"processingTime": "5 seconds"}',
        )
    if "availableNow" in trigger:
        return trigger
    # Spark accepts fewer spellings of durations, and counts in milliseconds.
    ticks = _ticks("processingTime", trigger["processingTime"])
    return {"processingTime": f"{-(-ticks // _TICKS_PER_MILLISECOND)} milliseconds"}


def _adapting(adapt: object) -> tuple[AdaptOptions | None, float]:
    """Return how plans follow the data, and the tolerance with which they follow queries; options of charts choose
    charts, and `epsilon` alone leaves plans as they are until queries change.
    """
    if isinstance(adapt, bool):
        return AdaptOptions() if adapt else None, DEFAULT_TOLERANCE
    if adapt == "charts":
        return AdaptOptions(ChartOptions()), DEFAULT_TOLERANCE
    names = ["epsilon", *(field.name for field in fields(ChartOptions))]
    if not isinstance(adapt, Mapping):
        raise WindloomError(
            f"adapt cannot be {adapt!r}",
            "it says whether plans follow the data: by planning again, or by charts, and how finely these are cut",
            'use True, False, "charts", {"parts": 10, "dimensions": 3, "partition": "geometric"}, or {"epsilon": 0.1}',
        )
    for name in adapt:
        if name not in names:
            raise WindloomError(
                f"adapt has no option '{name}'", "it says how charts are cut", near_names(str(name), names)
            )
    charts = {name: value for name, value in adapt.items() if name != "epsilon"}
    epsilon = check_tolerance(adapt.get("epsilon", DEFAULT_TOLERANCE))
    if "epsilon" in adapt and not charts:
        return None, epsilon
    return AdaptOptions(ChartOptions(**charts) if charts else None), epsilon


def _check_placement(placement: str) -> None:
    if placement == "executors":
        raise WindloomError(
            "loom.start runs on the driver, and not on executors",
            "rounds with queries that come and go, budgets and questions need its state in one place",
            "let the Spark operator answer, whose state is on executors: loom.answers().writeStream; or leave placement"
            " out",
        )
    if placement != "driver":
        raise WindloomError(
            f"unknown placement {placement!r}", "a stream runs on the driver", "leave it out, or use 'driver'"
        )


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1


def _ticks(what: str, duration: str | timedelta) -> int:
    try:
        ticks = parse_duration(duration)
    except WindloomError as error:
        raise WindloomError(f"{what}: {error.message}", error.detail, error.hint) from None
    if ticks < 0:
        raise WindloomError(f"{what} cannot be negative", f"it is {duration!r}", f"for example {what}='10 minutes'")
    return ticks


def parse_instant(what: str, value: str | datetime) -> int:
    """Return an instant as a tick; an instant without a zone is in UTC."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise WindloomError(
            f"{what} is not an instant", f"it is {value!r}", "write it as '2026-01-31 12:00:00', or give a datetime"
        ) from None
    if not isinstance(moment, datetime):
        raise WindloomError(f"{what} is not an instant", f"it is {value!r}", "give a string or a datetime")
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return since // timedelta(microseconds=1)


#: How many queries the lines of EXPLAIN about deadlines name one by one.
_SHOWN = 12


def least_seconds(scheduling: Scheduling, options: StreamOptions) -> tuple[float, str] | None:
    """Return the shortest time in which an answer can come, in seconds, and why; None if it is not known yet."""
    if scheduling.learned.length:
        event, took = scheduling.round_seconds(), scheduling.learned.length
        return event + took, f"rounds bring {event:.3g} s of event time and take {took:.3g} s"
    seconds = options.trigger_seconds
    if seconds:
        return seconds, f"a round starts every {duration_words(seconds)}"
    return None


def warning_of(query: Query, least: tuple[float, str] | None) -> str | None:
    """Return the warning about a query whose deadline is shorter than any round can be; None if there is none."""
    within = query.urgency.within_ticks
    if within is None or least is None or within >= least[0] * TICKS_PER_SECOND:
        return None
    seconds, why = least
    wanted = f"query '{query.name}' wants answers within {format_duration(within)}"
    return f"{wanted}, and {seconds:.3g} s is the least possible: {why}"


def schedule_lines(
    scheduling: Scheduling, queries: Iterable[Query], postponed: Mapping[str, int], least: tuple[float, str] | None
) -> list[str]:
    """Return the lines of EXPLAIN about the schedule, which come before the plan."""
    lines = []
    if scheduling.budget is not None:
        schedule = scheduling.schedule
        lines.append(f"Budget: {duration_words(scheduling.budget)} per round")
        lines.append(f"Schedule: {schedule.name}: {schedule.about}")
    known, records = list(queries), scheduling.kept
    listed = [
        query
        for query in known
        if str(query.urgency) or records.get(query.name, DeadlineRecord()).late or query.name in postponed
    ]
    listed.sort(key=lambda query: (query.urgency.priority, query.deadline_ticks, query.name))
    lines += [
        _line(query, records.get(query.name, DeadlineRecord()), postponed.get(query.name, 0))
        for query in listed[:_SHOWN]
    ]
    if len(listed) > _SHOWN:
        lines.append(f"  … and {count(len(listed) - _SHOWN, 'more query', 'more queries')}")
    warned = (warning_of(query, least) for query in known)
    return lines + [f"Warning: {warning}" for warning in warned if warning is not None]


def _line(query: Query, record: DeadlineRecord, left: int) -> str:
    words = [f"within {format_duration(query.deadline_ticks)}", f"priority {query.urgency.priority}"]
    if record.windows:
        late = f", {record.late:,} late (by {record.worst:.3g} s at worst)" if record.late else ", none late"
        words.append(f"{count(record.windows, 'window', 'windows')} answered{late}")
    if left:
        words.append(f"{count(left, 'window', 'windows')} left to later rounds")
    return f"  {query.name}: {', '.join(words)}"
