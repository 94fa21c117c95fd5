"""Row queries as text: rows of windows, what is reported of them, joins pair by pair, set operations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.language.select import parse_query
from windloom.model import (
    DataType,
    JoinKind,
    Query,
    Reports,
    RowQuery,
    Selection,
    SetKind,
    SetOperation,
    Stream,
    TimeWindow,
)

SECOND = 1_000_000
Read = Callable[[str], Query]


@pytest.fixture(scope="module")
def streams() -> dict[str, Stream]:
    kinds = {"ts": "timestamp", "k": "string", "x": "int", "y": "double"}
    columns = {name: DataType.parse(kind) for name, kind in kinds.items()}
    return {name: Stream(name, columns, time="ts") for name in ("a", "b", "c")}


@pytest.fixture(scope="module")
def rows_of(streams: dict[str, Stream]) -> Callable[[str], RowQuery]:
    def read(text: str) -> RowQuery:
        found = parse_query("q", text, streams).rows
        assert found is not None, "it is answered from partials"
        return found

    return read


def only(rows: RowQuery) -> Selection:
    (selection,) = rows.selections
    return selection


def test_a_select_without_aggregates_reports_the_rows_of_its_windows(rows_of: Callable[[str], RowQuery]) -> None:
    rows = rows_of("SELECT x, upper(k) AS u FROM a [TUMBLE 1 second] WHERE y > 5")
    selection = only(rows)
    assert rows.reports is Reports.STANDING
    assert rows.window == TimeWindow(SECOND, SECOND)
    assert [(column.name, column.expression.sql) for column in selection.columns] == [("x", "x"), ("u", "upper(k)")]
    (strand,) = selection.strands
    assert strand.columns == ("k", "x", "y")
    assert str(strand.where) == "y > 5"


@pytest.mark.parametrize(
    ("word", "reports"), [("ISTREAM", Reports.ENTERING), ("DSTREAM", Reports.LEAVING), ("rstream", Reports.STANDING)]
)
def test_a_word_after_select_says_which_rows_are_reported(
    rows_of: Callable[[str], RowQuery], word: str, reports: Reports
) -> None:
    assert rows_of(f"SELECT {word} x FROM a [RANGE 9 s SLIDE 3 s]").reports is reports
    assert only(rows_of(f"SELECT {word} DISTINCT x FROM a [TUMBLE 1 s]")).is_distinct


def test_a_column_may_be_called_like_such_a_word(streams: dict[str, Stream]) -> None:
    columns = {"ts": DataType.parse("timestamp"), "istream": DataType.parse("int")}
    own = {"a": Stream("a", columns, time="ts")}
    rows = parse_query("q", "SELECT istream FROM a [TUMBLE 1 s]", own).rows
    assert rows is not None
    assert rows.reports is Reports.STANDING
    assert [column.name for column in rows.columns] == ["istream"]


def test_a_star_stands_for_all_columns(rows_of: Callable[[str], RowQuery]) -> None:
    assert [column.name for column in rows_of("SELECT * FROM a [TUMBLE 1 s]").columns] == ["ts", "k", "x", "y"]
    some = rows_of("SELECT a.*, b.x AS other FROM a [TUMBLE 1 s] JOIN b [TUMBLE 1 s] ON a.k = b.k")
    assert [column.name for column in some.columns] == ["ts", "k", "x", "y", "other"]


def test_conditions_belong_to_one_strand_or_to_several(rows_of: Callable[[str], RowQuery]) -> None:
    selection = only(
        rows_of(
            "SELECT a.x FROM a [RANGE 8 s SLIDE 4 s] JOIN b [RANGE 4 s] ON a.k = b.k AND b.x > 1"
            " WHERE a.x < b.x AND a.y = 2"
        )
    )
    assert [str(strand.where) for strand in selection.strands] == ["y = 2", "x > 1"]
    found = [(condition.expression.sql, condition.strands, condition.is_key) for condition in selection.conditions]
    assert found == [("a.k = b.k", (0, 1), True), ("a.x < b.x", (0, 1), False)]
    assert [strand.window.range_ticks for strand in selection.strands] == [8 * SECOND, 4 * SECOND]


def test_within_makes_windows_of_every_tick(rows_of: Callable[[str], RowQuery]) -> None:
    rows = rows_of("SELECT a.x FROM a JOIN b WITHIN 30 minutes ON a.k = b.k JOIN c WITHIN '1 hour' ON c.x = b.x")
    assert rows.within
    assert rows.reports is Reports.ENTERING
    hour = 3_600 * SECOND
    assert [strand.window for strand in rows.strands] == [TimeWindow(hour, 1)] * 3
    assert [attached.within_ticks for attached in only(rows).attached] == [hour // 2, hour]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.x FROM a JOIN b ON a.k = b.k WITHIN 30 minutes",
        "SELECT a.x FROM a JOIN b ON (a.k = b.k) WITHIN '30 minutes'",
        "SELECT a.x FROM a JOIN b USING (k) WITHIN 30 minutes",
    ],
)
def test_within_may_stand_after_the_condition(rows_of: Callable[[str], RowQuery], text: str) -> None:
    before = "ON a.k = b.k" if "ON" in text else "USING (k)"
    for more in ("", " WHERE a.x > 1", " JOIN c WITHIN 1 hour ON c.k = a.k"):
        other = rows_of(f"SELECT a.x FROM a JOIN b WITHIN 30 minutes {before}{more}")
        assert rows_of(text + more) == other


def test_a_column_may_be_called_within(streams: dict[str, Stream]) -> None:
    known = dict(streams)
    known["b"] = Stream("b", {**known["b"].columns, "within": known["b"].columns["x"]}, time="ts")
    text = "SELECT a.x FROM a JOIN b ON a.x = b.within - 5 AND within - 5 > 1 AND a.k = b.k WITHIN 2 s"
    found = parse_query("q", text, known).rows
    assert found is not None
    assert only(found).attached[0].within_ticks == 2 * SECOND


def test_within_may_stand_beside_windows(rows_of: Callable[[str], RowQuery]) -> None:
    rows = rows_of("SELECT a.x FROM a [TUMBLE 10 s] JOIN b [TUMBLE 10 s] WITHIN 2 s ON a.k = b.k")
    assert not rows.within
    assert only(rows).attached[0].within_ticks == 2 * SECOND


def test_semi_and_anti_joins_look_for_matches(rows_of: Callable[[str], RowQuery]) -> None:
    selection = only(rows_of("SELECT a.x FROM a [TUMBLE 1 s] LEFT ANTI JOIN b [TUMBLE 1 s] ON a.k = b.k AND b.x > 3"))
    (looked,) = selection.looked
    assert (looked.kind, looked.strands) == (JoinKind.ANTI, (1,))
    assert [condition.expression.sql for condition in looked.on] == ["a.k = b.k"]
    assert str(selection.strands[1].where) == "x > 3"
    assert selection.joined == 1


def test_exists_looks_for_matches_in_one_stream_or_several(rows_of: Callable[[str], RowQuery]) -> None:
    selection = only(
        rows_of(
            "SELECT x FROM a [TUMBLE 1 s] WHERE x > 1 AND NOT EXISTS (SELECT 1 FROM b [TUMBLE 1 s] WHERE k = a.k)"
            " AND EXISTS (SELECT 1 FROM c [TUMBLE 1 s] JOIN b [TUMBLE 1 s] d ON c.x = d.x WHERE c.k = a.k)"
        )
    )
    assert [(looked_up.kind, looked_up.strands) for looked_up in selection.looked] == [
        (JoinKind.ANTI, (1,)),
        (JoinKind.SEMI, (2, 3)),
    ]
    assert [condition.expression.sql for condition in selection.looked[0].on] == ["b.k = a.k"]
    assert [condition.expression.sql for condition in selection.looked[1].on] == ["c.x = d.x", "c.k = a.k"]


def test_a_right_join_is_a_left_join_turned_round(rows_of: Callable[[str], RowQuery]) -> None:
    selection = only(rows_of("SELECT b.x FROM a [TUMBLE 1 s] RIGHT JOIN b [TUMBLE 1 s] ON a.k = b.k"))
    assert [strand.stream for strand in selection.strands] == ["b", "a"]
    assert selection.attached[0].kind is JoinKind.LEFT


def test_set_operations_bind_as_in_spark(rows_of: Callable[[str], RowQuery]) -> None:
    first, second, third = (f"SELECT k FROM {name} [TUMBLE 1 s]" for name in "abc")
    body = rows_of(f"{first} UNION ALL {second} INTERSECT {third}").body
    assert isinstance(body, SetOperation)
    assert body.kind is SetKind.UNION_ALL
    assert isinstance(body.right, SetOperation)
    assert body.right.kind is SetKind.INTERSECT
    body = rows_of(f"({first} UNION {second}) MINUS ALL {third}").body
    assert isinstance(body, SetOperation)
    assert body.kind is SetKind.EXCEPT_ALL
    assert isinstance(body.left, SetOperation)


@pytest.mark.parametrize(
    ("text", "is_lasting"),
    [
        ("SELECT a.x FROM a [TUMBLE 1 s] JOIN b [TUMBLE 1 s] ON a.x < b.x", True),
        ("SELECT x FROM a [TUMBLE 1 s] UNION ALL SELECT x FROM b [TUMBLE 1 s]", True),
        ("SELECT DISTINCT x FROM a [TUMBLE 1 s]", False),
        ("SELECT a.x FROM a [TUMBLE 1 s] LEFT JOIN b [TUMBLE 1 s] ON a.k = b.k", False),
        ("SELECT a.x FROM a [TUMBLE 1 s] LEFT SEMI JOIN b [TUMBLE 1 s] ON a.k = b.k", False),
        ("SELECT x FROM a [TUMBLE 1 s] EXCEPT ALL SELECT x FROM b [TUMBLE 1 s]", False),
    ],
)
def test_rows_that_are_made_of_tuples_have_lifetimes(
    rows_of: Callable[[str], RowQuery], text: str, is_lasting: bool
) -> None:
    assert rows_of(text).has_lifetimes == is_lasting


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.k, count(*) FROM a [TUMBLE 1 s] JOIN b [TUMBLE 1 s] ON a.x < b.x GROUP BY a.k",
        "SELECT count(*) FROM a [TUMBLE 1 s] JOIN b [TUMBLE 1 s] ON a.k = b.k JOIN c [TUMBLE 1 s]"
        " ON b.x = c.x AND a.y = c.y",
        "SELECT median(a.x * b.y) FROM a [TUMBLE 1 s] JOIN b [TUMBLE 1 s] ON a.k = b.k",
        "SELECT count(*) FROM a [TUMBLE 9 s] JOIN b [TUMBLE 9 s] WITHIN 1 s ON a.k = b.k",
        "SELECT count(*) FROM a [TUMBLE 9 s] WHERE EXISTS (SELECT 1 FROM b [TUMBLE 9 s] WHERE b.x > a.x)",
    ],
)
def test_what_partials_cannot_answer_is_aggregated_over_rows(rows_of: Callable[[str], RowQuery], text: str) -> None:
    rows = rows_of(text)
    assert rows.columns == ()
    assert rows.has_lifetimes == ("EXISTS" not in text)


def test_what_partials_can_answer_is_not(streams: dict[str, Stream]) -> None:
    text = "SELECT a.k, sum(a.x * b.x) FROM a [TUMBLE 1 s] JOIN b [TUMBLE 1 s] ON a.k = b.k GROUP BY a.k"
    assert parse_query("q", text, streams).join is not None
