"""Whatever the text, the language answers with a query or with an error the user can act on.

`WINDLOOM_FUZZ=200000` draws more pasted texts with mistakes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

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


PASTED = [
    block
    for file in sorted((Path(__file__).parents[2] / "equivalence" / "pasted").glob("*.sql"))
    for block in file.read_text(encoding="utf-8").strip("\n").split("\n\n")[1:]
]
TRADES = Stream(
    "trades",
    {
        "ts": DataType.parse("timestamp"),
        "symbol": DataType.parse("string"),
        "venue": DataType.parse("string"),
        "price": DataType.parse("double"),
        "volume": DataType.parse("int"),
        "fee": DataType.parse("decimal(10,2)"),
        "flag": DataType.parse("boolean"),
    },
    time="ts",
)


def mutated(seed: int) -> str:
    """A text for Spark, Flink, RisingWave or DuckDB with a few words left out, doubled, moved or put in."""
    random = Random(seed)
    words = re.findall(r"\w+|'[^']*'|\s+|.", random.choice(PASTED), re.DOTALL)
    for _ in range(random.randint(1, 4)):
        place, other = random.randrange(len(words)), random.randrange(len(words))
        match random.randrange(5):
            case 0:
                del words[place : place + random.randint(1, 3)]
            case 1:
                words.insert(place, words[other])
            case 2:
                words[place], words[other] = words[other], words[place]
            case 3:
                words.insert(place, f" {random.choice(TOKENS)} ")
            case 4:
                words[place:place] = re.findall(r"\w+|\s+|.", random.choice(PASTED), re.DOTALL)[other : other + 6]
        words = words or [" "]
    return "".join(words)


@settings(max_examples=int(os.environ.get("WINDLOOM_FUZZ", examples(300))), deadline=None)
@given(st.integers(0, 1 << 40))
def test_a_mistake_in_a_pasted_text_gives_a_query_or_an_error_with_a_place(seed: int) -> None:
    check(complaint(lambda: parse_query("q", mutated(seed), {"trades": TRADES})))
