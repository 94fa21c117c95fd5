"""How an error looks: what is wrong, where it stands, and what to do about it."""

from __future__ import annotations

from textwrap import dedent

import pytest

from windloom.errors import QueryError
from windloom.language.select import parse_query
from windloom.model import Stream

CASES = {
    "an unknown column": (
        """\
        SELECT symbol,
               avg(prise) AS p
        FROM trades [RANGE 1 hour SLIDE 1 minute]
        GROUP BY symbol
        """,
        """\
        query 'avg_1h': unknown column 'prise'
        line 2, column 12
                 avg(prise) AS p
                     ^^^^^
        hint: did you mean 'price'?""",
    ),
    "a month": (
        "SELECT avg(price) FROM trades\n  [RANGE 1 month SLIDE 1 day]",
        """\
        query 'avg_1h': 'month' is not a duration of fixed length
        line 2, column 10
            [RANGE 1 month SLIDE 1 day]
                   ^^^^^^^
        months and years differ in length, so windows of that length cannot be aligned
        hint: use days or weeks, for example 30 days""",
    ),
    "an aggregate of a string": (
        "SELECT avg(symbol) FROM trades [TUMBLE 1 hour]",
        """\
        query 'avg_1h': cannot take 'avg(symbol)'
        line 1, column 12
          SELECT avg(symbol) FROM trades [TUMBLE 1 hour]
                     ^^^^^^
        'symbol' is of type string, which is not a number
        hint: use a numeric column, or cast it: avg(cast(symbol AS double))""",
    ),
    "a text that breaks off": (
        "SELECT avg(price) FROM trades [TUMBLE 1 hour] WHERE price >",
        """\
        query 'avg_1h': something is missing after '>'
        line 1, column 60
          SELECT avg(price) FROM trades [TUMBLE 1 hour] WHERE price >
                                                                     ^
        hint: complete the expression""",
    ),
    "a tab before the token": (
        "SELECT\tavg(\tprise)\tFROM trades [TUMBLE 1 hour]",
        """\
        query 'avg_1h': unknown column 'prise'
        line 1, column 13
          SELECT\tavg(\tprise)\tFROM trades [TUMBLE 1 hour]
                \t    \t^^^^^
        hint: did you mean 'price'?""",
    ),
    "an empty text": (
        " ",
        """\
        query 'avg_1h': the text is empty
        line 1, column 1
        hint: write SELECT … FROM stream [RANGE 1 hour SLIDE 1 minute] …""",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_shows_the_place_and_the_fix(streams: dict[str, Stream], case: str) -> None:
    text, expected = CASES[case]
    with pytest.raises(QueryError) as caught:
        parse_query("avg_1h", dedent(text), streams)
    assert str(caught.value) == dedent(expected)


def test_of_a_long_line_only_the_surroundings_are_shown(streams: dict[str, Stream]) -> None:
    numbers = ", ".join(map(str, range(200)))
    text = f"SELECT count(*) FROM trades [TUMBLE 1 h] WHERE volume IN ({numbers}) AND prise IN ({numbers})"
    with pytest.raises(QueryError) as caught:
        parse_query("q", text, streams)
    place, line, caret = caught.value.detail.splitlines()
    assert place == f"line 1, column {text.index('prise') + 1}"
    assert len(line) < 130
    assert line.index("prise") == caret.index("^^^^^")


def test_errors_never_show_terminal_codes_or_class_names(streams: dict[str, Stream]) -> None:
    for text in ("SELECT a b c d", "SELECT count(*) FROM trades [TUMBLE 1 h] WHERE a BETWEEN 1", "SELECT case when"):
        with pytest.raises(QueryError) as caught:
            parse_query("q", text, streams)
        assert "\x1b" not in str(caught.value)
        assert "sqlglot" not in str(caught.value)
        assert "class" not in str(caught.value)
