"""`windloom translate`: texts for other systems in our own form, without any declaration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from windloom.cli.translate import translate as command
from windloom.errors import QueryError
from windloom.language.select import parse_query
from windloom.language.translate import translate
from windloom.model import DataType, Stream

FOLDER = Path(__file__).parents[2] / "equivalence" / "pasted"
COLUMNS = "ts timestamp, symbol double, venue double, price double, volume double, fee double, flag boolean"
TRADES = Stream(
    "trades", {name: DataType.parse(kind) for name, kind in (each.split() for each in COLUMNS.split(", "))}, time="ts"
)


@pytest.mark.parametrize("dialect", ["spark", "flink", "risingwave", "duckdb"])
def test_every_pasted_text_means_the_same_in_our_form(dialect: str) -> None:
    for block in (FOLDER / f"{dialect}.sql").read_text(encoding="utf-8").strip("\n").split("\n\n")[1:]:
        (found,) = translate(block, "job.sql", dialect)
        assert found.query is not None, block
        ours = parse_query("q", found.text, {"trades": TRADES})
        pasted = parse_query("q", block, {"trades": TRADES})
        assert ours.window == pasted.window, found.text
        assert (ours.where, ours.having) == (pasted.where, pasted.having), found.text
        assert [each.expression for each in ours.group_by] == [each.expression for each in pasted.group_by], found.text
        assert {str(each) for each in ours.aggregates} == {str(each) for each in pasted.aggregates}, found.text
        assert [each.name for each in ours.outputs] == [each.name for each in pasted.outputs], found.text
        assert ours.presentation.order == pasted.presentation.order


def test_statements_keep_their_names_and_what_stops_a_text_is_shown_with_its_place() -> None:
    text = """
    CREATE STREAM bids (at TIMESTAMP, price INT) TIME at;
    CREATE MATERIALIZED VIEW highs AS SELECT max(price) AS p FROM tumble(bids, at, INTERVAL '1 h') GROUP BY window_end;
    INSERT INTO ranks SELECT rank() OVER (ORDER BY price) AS r
      FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '1' DAY)) GROUP BY window_start, window_end;
    """
    highs, ranks = translate(text, "job.sql")
    assert (highs.name, highs.text) == ("highs", "SELECT max(price) AS p\nFROM bids [TUMBLE 1 hour]")
    assert ranks.name == "ranks"
    assert ranks.error is not None
    assert "OVER" in ranks.error.message
    assert ranks.error.detail.startswith("line 4, column ")


def test_double_quotes_hold_names_where_the_dialect_says_so() -> None:
    text = """SELECT count(*) AS n FROM t WHERE "a b" > 1 GROUP BY window(ts, '1 hour')"""
    assert "WHERE 'a b' > 1" in translate(text, "job.sql")[0].text
    assert "WHERE `a b` > 1" in translate(text, "job.sql", "duckdb")[0].text


def test_the_command_prints_a_catalog(tmp_path: Path) -> None:
    file = tmp_path / "job.sql"
    file.write_text("SELECT window.start AS s, count(*) AS n FROM t GROUP BY window(ts, '1 hour'); SELECT 1", "utf-8")
    outcome = CliRunner().invoke(command, [str(file)], standalone_mode=False)
    assert outcome.return_value == 1
    shown = "CREATE QUERY q1 AS\n  SELECT count(*) AS n\n  FROM t [TUMBLE 1 hour];\n-- as it stands, it shows: s, n\n"
    assert outcome.output.startswith(shown)
    assert re.search(r"-- q2 cannot be read\n-- .*q2.*: the query has no FROM\n", outcome.output)


def test_a_text_without_a_query_is_an_error() -> None:
    with pytest.raises(QueryError, match="no query"):
        translate(" ; ", "job.sql")
