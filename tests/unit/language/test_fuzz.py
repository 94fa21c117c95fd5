"""Whatever the text, the language answers with a query or with an error the user can act on."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from windloom.errors import QueryError
from windloom.language.catalog import parse_catalog
from windloom.language.select import parse_query
from windloom.model import DataType, Stream

STREAMS = {
    "trades": Stream(
        "trades", {"ts": DataType.parse("timestamp"), "price": DataType.parse("double")}, time="ts", time_unit=None
    )
}
TOKENS = """
    SELECT FROM WHERE GROUP BY HAVING AS ORDER LIMIT UNION JOIN ON DISTINCT ALL WITH VALUES OVER PARTITION FILTER CASE
    WHEN THEN ELSE END IF IN IS NOT NULL TRUE BETWEEN AND OR LIKE RLIKE ESCAPE ANY EXISTS CAST TRY_CAST INTERVAL DATE
    TIMESTAMP EXTRACT TRIM SUBSTRING POSITION OVERLAY LATERAL VIEW window window( RANGE SLIDE TUMBLE OFFSET ROWS hour
    minutes month CREATE STREAM QUERY TIME DELAY UNIT RATE trades ts price prise t q sum( avg( count( count(*) abs(
    rand( explode( struct( transform( x-> -> => 1 0 1L 1.5 .5 1e3 10s 'a' "b" 'it''s' r'\\d' X'1F' 0x1F `c` `` ( ) [ ]
    { } , . ; : :: ? @ $ # * + - / % || | & ^ ~ ! = == != <> <= < > <=> << >> div -- /* */ /*+ {{ \\ ' " ` \n é ∞
""".split()  # noqa: SIM905 - a table of words
PARTS = st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join)
CLAUSES = st.builds(
    "SELECT {} FROM trades [{}] {}".format,
    PARTS,
    st.sampled_from(["TUMBLE 1 hour", "RANGE 1 hour SLIDE 1 minute"]) | PARTS,
    st.builds("WHERE {} GROUP BY {} HAVING {}".format, PARTS, PARTS, PARTS) | PARTS,
)


def complaint(read: Callable[[], object]) -> QueryError | None:
    try:
        read()
    except QueryError as error:
        return error
    return None


def check(error: QueryError | None) -> None:
    if error is not None:
        assert error.detail.startswith("line ")
        assert error.hint


@settings(max_examples=examples(300), deadline=None)
@given(PARTS | CLAUSES | st.text(max_size=60))
def test_any_text_is_a_query_or_an_error_with_a_place(text: str) -> None:
    check(complaint(lambda: parse_query("q", text, STREAMS)))


@settings(max_examples=examples(150), deadline=None)
@given(
    st.lists(
        st.builds("CREATE STREAM {} ({}) {}".format, PARTS, PARTS, PARTS)
        | st.builds("CREATE QUERY {} AS {}".format, PARTS, CLAUSES)
        | PARTS,
        max_size=4,
    ).map(";\n".join)
)
def test_any_catalog_is_read_or_gives_an_error_with_a_place(text: str) -> None:
    check(complaint(lambda: parse_catalog(text).parse(STREAMS)))
