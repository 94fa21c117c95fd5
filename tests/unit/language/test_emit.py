"""The clause EMIT at the end of a query."""

from __future__ import annotations

import pytest

from windloom.errors import QueryError
from windloom.language import parse_query
from windloom.model import DataType, Emission, Emits, Query, Reports, Stream

KINDS = {"ts": "timestamp", "k": "string", "x": "int", "emit": "int"}
STREAMS = {"s": Stream("s", {name: DataType.parse(kind) for name, kind in KINDS.items()}, time="ts")}
TEXT = "SELECT k, count(*) AS n FROM s [RANGE 1 hour SLIDE 1 minute] GROUP BY k"


def read(text: str) -> Query:
    return parse_query("q", text, STREAMS)


@pytest.mark.parametrize(
    ("clause", "emission"),
    [
        ("", Emission()),
        ("EMIT FINAL", Emission()),
        ("emit changes;", Emission(Emits.CHANGES)),
        ("HAVING count(*) > 1 EMIT EMPTY", Emission(Emits.EMPTY)),
        ("EMIT EARLY EVERY 10 seconds", Emission(Emits.EARLY, 10_000_000)),
        ("emit early every '1 minute 30 s';", Emission(Emits.EARLY, 90_000_000)),
    ],
)
def test_a_query_says_at_its_end_when_it_reports_rows(clause: str, emission: Emission) -> None:
    query = read(f"{TEXT} {clause}")
    assert query.emission == emission
    assert query.group_by == read(TEXT).group_by


def test_emit_stays_a_name_where_no_clause_can_stand() -> None:
    query = read("SELECT emit, max(emit) AS empty FROM s [TUMBLE 1 hour] AS emit WHERE emit > 1 GROUP BY emit")
    assert query.emission == Emission()
    assert [grouping.name for grouping in query.group_by] == ["emit"]


def test_the_clause_shows_as_it_is_written() -> None:
    for clause in ("EMIT CHANGES", "EMIT EARLY EVERY 10 seconds"):
        assert str(read(f"{TEXT} {clause}").emission) == clause


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (f"{TEXT} EMIT OFTEN", "EMIT OFTEN is not known", "EMIT CHANGES"),
        (f"{TEXT} EMIT EARLY", "EVERY is missing after EMIT EARLY", "EMIT EARLY EVERY 10 seconds"),
        (f"{TEXT} EMIT EARLY 10 seconds", "unexpected '10' after EMIT EARLY", "EMIT EARLY EVERY 10 seconds"),
        (f"{TEXT} EMIT EARLY EVERY", "a duration is missing after EVERY", "EMIT EARLY EVERY 10 seconds"),
        (f"{TEXT} EMIT EARLY EVERY 0 seconds", "between two reports must be positive", "EVERY 10 seconds"),
        (f"{TEXT} EMIT EARLY EVERY -5 seconds", "between two reports must be positive", "EVERY 10 seconds"),
        (f"{TEXT} EMIT EARLY EVERY 10000000 days", "between two reports must be at most", "EVERY 10 seconds"),
        (f"{TEXT} EMIT EARLY EVERY often", "duration", ""),
        (f"{TEXT} EMIT EARLY EVERY 1 month", "month", ""),
        ("SELECT k FROM s [TUMBLE 1 hour] EMIT EARLY EVERY 1 minute", "this query reports rows", "EMIT CHANGES"),
        (
            "SELECT count(*) FROM s [SESSION GAP 1 minute] EMIT EARLY EVERY 1 second",
            "EMIT EARLY is not for session windows",
            "windows of time",
        ),
        (
            "SELECT count(*) FROM s [ROWS 10 SLIDE 5] EMIT EARLY EVERY 1 second",
            "EMIT EARLY is not for windows of rows",
            "windows of time",
        ),
        (
            "SELECT count(*) FROM s [TUMBLE 1 hour] l JOIN s [TUMBLE 1 hour] r ON l.x < r.x EMIT EARLY EVERY 1 second",
            "EMIT EARLY is not for aggregates over such a join",
            "join by equal columns",
        ),
        (
            "SELECT max(x) AS as_of FROM s [TUMBLE 1 hour] EMIT EARLY EVERY 1 second",
            "EMIT EARLY adds a column 'as_of'",
            "another name",
        ),
        (f"{TEXT} EMIT CHANGES EMPTY", "unexpected 'EMPTY' after EMIT CHANGES", "EMIT EMPTY"),
        (
            "SELECT k FROM s [TUMBLE 1 hour] EMIT EMPTY",
            "is about aggregates, and this query reports",
            "EMIT CHANGES",
        ),
        (
            "SELECT ISTREAM k FROM s [TUMBLE 1 hour] EMIT CHANGES",
            "cannot stand with ISTREAM",
            "leave ISTREAM out",
        ),
        ("SELECT count(*) FROM s [SESSION GAP 1 minute] EMIT CHANGES", "not for session windows", "windows of time"),
        (
            "SELECT count(*) FROM s [CUMULATE 1 h SLIDE 1 s] EMIT CHANGES",
            "not for cumulating windows",
            "windows of time",
        ),
        ("SELECT count(*) FROM s [ROWS 10 SLIDE 5] EMIT EMPTY", "not for windows of rows", "windows of time"),
        (
            "SELECT count(*) FROM s [LANDMARK SLIDE 1 hour] EMIT EMPTY",
            "not for windows from a landmark",
            "leave EMIT out",
        ),
        ("SELECT count(*) AS change FROM s [TUMBLE 1 hour] EMIT CHANGES", "adds a column 'change'", "another name"),
    ],
)
def test_what_cannot_be_emitted_is_refused_with_what_to_do(text: str, message: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        read(text)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_rows_that_come_and_go_tell_their_end_where_it_is_known() -> None:
    rows = read("SELECT k, x FROM s [RANGE 1 hour SLIDE 1 minute] WHERE x > 1 EMIT CHANGES").rows
    assert rows is not None
    assert rows.reports is Reports.ENTERING
    assert rows.tells_end
    text = "SELECT k FROM s [TUMBLE 1 hour] EXCEPT SELECT k FROM s [TUMBLE 1 hour] WHERE x > 1 EMIT CHANGES"
    query = read(text)
    assert query.emission.kind is Emits.CHANGES
    assert query.rows is not None
    assert query.rows.reports is Reports.STANDING
    assert not query.rows.tells_end
