"""Deadlines in words: the lines of EXPLAIN about a budget, and warnings about deadlines that cannot be kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from windloom.engine.running.delivery import duration_words
from windloom.engine.running.scheduling import DeadlineRecord, Scheduling
from windloom.engine.streaming.options import StreamOptions
from windloom.model.figures import count
from windloom.model.query import Query
from windloom.model.time import TICKS_PER_SECOND, format_duration

#: How many queries are named one by one.
_SHOWN = 12


def least_seconds(scheduling: Scheduling, options: StreamOptions) -> tuple[float, str] | None:
    """Return the shortest time in which an answer can come, in seconds, and why; None if nothing is known of rounds
    yet.
    """
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
