"""The examples run, the transcripts and the picture in the docs are real, and rules of docs/semantics.md hold."""

from __future__ import annotations

import ast
import json
import os
import re
import runpy
import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from windloom import Loom, WindloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PICTURE = ROOT / "docs" / "pictures" / "trades.svg"
_EXPLAIN = re.compile(r"^```text\n\$ windloom explain (.+)\n((?s:.*?))^```$", re.MULTILINE)


def test_the_quickstart_runs_and_equals_spark(capsys: pytest.CaptureFixture[str]) -> None:
    made = runpy.run_path(str(EXAMPLES / "quickstart.py"))
    said = capsys.readouterr().out
    assert said.startswith("Plan: 2 queries, 1 stream")
    assert "rows equal Spark's own window()" in said.splitlines()[-1]
    assert made["results"]["avg_1h"].columns == ["window_start", "window_end", "symbol", "p"]


def test_the_notebook_runs_and_shows_pictures_and_tables(spark: SparkSession) -> None:
    variables: dict[str, Any] = {}
    cells = json.loads((EXAMPLES / "notebook.ipynb").read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    _, plan, what_if, results, frame, chart = [_last_value(source, variables) for source in sources]
    assert plan._repr_html_().startswith("<svg")
    assert "of a set" in what_if._repr_html_() or "tree" in what_if._repr_html_()
    assert "avg_5m" in results._repr_html_()
    assert list(frame.columns) == ["window_start", "window_end", "symbol", "p"]
    assert "S2" in chart._repr_svg_()


def _last_value(source: str, variables: dict[str, Any]) -> Any:
    """What a notebook would show below a cell: the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), variables)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), variables)


def test_the_example_of_joins_equals_spark_and_shows_its_plan(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(EXAMPLES / "joins.py"))
    said = capsys.readouterr().out
    assert said.count("rows equal Spark's own window()") == 2
    assert "Join orders o ⋈ clicks c\n  links         o ⋈ c (inner) on o.user = c.user\n" in said
    assert "tree 2.0 of set 2" in said  # of which the query by_user is answered, too


def test_the_example_of_relations_shows_what_a_new_version_changes(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(EXAMPLES / "relations.py"))
    told = re.findall(r"\| *(NULL|Basel|Bern|Chur)\| *(\d+)\|", capsys.readouterr().out)
    now, then = told[:3], told[3:]
    assert now == [("NULL", "1599"), ("Bern", "1598"), ("Chur", "1597")]
    assert then == [("NULL", "1599"), ("Basel", "799"), ("Bern", "1598"), ("Chur", "798")]


def test_the_example_of_an_aggregate_of_ones_own_equals_its_definition(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(EXAMPLES / "geo_mean.py"), run_name="__main__")
    assert capsys.readouterr().out.startswith("query 'mean': 105 rows equal")


def test_the_example_of_a_stream_says_what_the_docs_say(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(EXAMPLES / "streaming.py"))
    first, *said = capsys.readouterr().out.splitlines()
    assert first.startswith("first: RoundProgress(round=0, batch=0, events=24000, ")
    shown = [line for line in (ROOT / "docs" / "streaming.md").read_text().splitlines() if line.startswith("added: ")]
    assert said[:2] == shown
    assert said[2:] == [
        "asked: 35 rows; watermark 2026-01-05T00:39:49.950000+00:00",
        "avg_5m 320 rows",
        "avg_9m 35 rows",
        "high_9m 20 rows",
    ]


def test_the_example_catalog_equals_spark(spark: SparkSession) -> None:
    from windloom.spark.sources.read import read_source

    loom = Loom(spark)
    loom.load(EXAMPLES / "trades.cql")
    loom.stream("trades", read_source(spark, loom.streams["trades"], str(EXAMPLES / "trades.csv")))
    results = loom.run()
    for name in loom.queries:
        found = loom.verify(name, results)
        assert found.ok, str(found)
        assert found.rows > 0


@cache
def transcripts() -> tuple[tuple[str, str], ...]:
    """(arguments, output) of every `$ windloom explain …` in the docs."""
    pages = (ROOT / "docs" / name for name in ("explain.md", "cost.md", "adapting.md"))
    return tuple(found for page in pages for found in _EXPLAIN.findall(page.read_text(encoding="utf-8")))


@pytest.fixture
def shipped_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The docs show plans made with the constants that ship, not with those of the tests or of a user."""
    monkeypatch.delenv("WINDLOOM_COSTS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.usefixtures("shipped_costs")
def test_transcripts_in_the_docs_are_what_explain_says(spark: SparkSession) -> None:
    assert transcripts()
    for arguments, shown in transcripts():
        catalog, *options = shlex.split(arguments)
        sharing = "--sharing" in options
        charts = "--chart" in options
        options = [option for option in options if option not in ("--sharing", "--chart")]
        loom = Loom(spark)
        loom.load(ROOT / catalog)
        named = {option.removeprefix("--"): value for option, value in zip(options[::2], options[1::2], strict=True)}
        if charts:
            said = loom.chart(**{name: int(value) for name, value in named.items()})
        else:
            said = loom.explain(sharing=sharing, **named)
        for piece in re.split(r"^…\n", shown, flags=re.MULTILINE):  # an ellipsis leaves something out
            assert piece in said, f"windloom explain {arguments} says:\n{said}"


@pytest.mark.usefixtures("shipped_costs")
def test_the_picture_in_the_docs_is_what_explain_draws(spark: SparkSession) -> None:
    loom = Loom(spark)
    loom.load(EXAMPLES / "trades.cql")
    drawn = loom.explain("svg") + "\n"
    if os.environ.get("WINDLOOM_UPDATE_GOLDEN"):
        PICTURE.write_text(drawn, encoding="utf-8")
    assert drawn == PICTURE.read_text(encoding="utf-8"), "if this is meant, run again with WINDLOOM_UPDATE_GOLDEN=1"


def woven(spark: SparkSession, rows: str, text: str) -> Loom:
    """A loom with one query `q` over the rows of a VALUES list `(second, k, n)`."""
    loom = Loom(spark)
    frame = spark.sql(f"SELECT timestamp_seconds(second) AS ts, k, n FROM VALUES {rows} AS t(second, k, n)")
    loom.stream("s", frame, time="ts")
    loom.query("q", text)
    return loom


def test_tuples_without_a_usable_time_are_refused_with_their_number(spark: SparkSession) -> None:
    rows = "(1, 'a', 1L), (NULL, 'a', 2L), (NULL, 'b', 3L)"
    loom = woven(spark, rows, "SELECT k, sum(n) AS a FROM s [TUMBLE 10 seconds] WHERE n < 3 GROUP BY k")
    with pytest.raises(WindloomError, match="tuples without a usable time") as refused:
        loom.run(placement="driver", untimed="stop")
    assert "in 2 of its rows" in refused.value.detail

    texts = Loom(spark)
    texts.stream("s", spark.sql("SELECT * FROM VALUES ('2026-01-01 00:00:00'), ('soon') AS t(ts)"), time="ts")
    texts.query("q", "SELECT count(*) AS n FROM s [TUMBLE 10 seconds]")
    with pytest.raises(WindloomError, match="tuples without a usable time") as refused:
        texts.run(placement="driver", untimed="stop")
    assert "in 1 of its rows" in refused.value.detail


def test_an_overflow_names_query_window_group_and_value(spark: SparkSession) -> None:
    rows = "(1, 'a', 9223372036854775807L), (3, 'b', 9223372036854775807L), (8, 'b', 1L), (9, 'a', -1L)"
    loom = woven(spark, rows, "SELECT k, sum(n) AS a FROM s [RANGE 10 seconds SLIDE 10 seconds] GROUP BY k")
    with pytest.raises(WindloomError, match="query 'q'") as refused:
        loom.run(placement="driver")
    for fact in ("1970-01-01T00:00:00", "1970-01-01T00:00:10", "group b", "9223372036854775808"):
        assert fact in refused.value.detail


def test_results_are_counted_before_having(spark: SparkSession) -> None:
    rows = "(1, 'a', 1L), (2, 'a', 2L), (3, 'b', 3L)"
    loom = woven(spark, rows, "SELECT k, sum(n) AS a FROM s [TUMBLE 10 seconds] GROUP BY k HAVING count(*) > 1")
    results = loom.run()
    assert results.stats.results == 2
    assert results.arrow("q")["k"].to_pylist() == ["a"]
