"""Every block of code in the docs that claims to run is run: `python` as it stands, `sh` line by line.

What cannot run here as it stands is changed by a few replacements (addresses of servers, sizes), named below. A block
that is not meant to run is written as `text`.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.command import Command
from support.pages import DECISIONS, PAGES, ROOT, fences, page_name
from support.postgres import Server
from windloom import Loom
from windloom.engine.handle import Handle
from windloom.spark.sources.files import find_file_stream
from windloom.spark.sources.read import read_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN = [page for page in PAGES if page not in DECISIONS and page.name != "CHANGELOG.md"]
EXAMPLES = ROOT / "examples"
#: Blocks that are the text of an example are run with it, in tests/spark/test_examples.py and test_server.py.
EXAMPLE_TEXTS = {file.read_text(encoding="utf-8").split('"""\n\n', 1)[1] for file in EXAMPLES.glob("*.py")}
#: Commands that are not run here, and where they are.
ELSEWHERE = {
    r"make \w+": "tests/unit/docs/test_names.py looks for the target",
    r"windloom calibrate": "minutes; tests/interface/test_calibrate.py runs small ones",
}

Names = dict[str, Any]
Changed = Callable[[str], str]


def blocks(language: str) -> list[Any]:
    """Of each page that has some, the page."""
    pages = [page for page in SHOWN if any(text not in EXAMPLE_TEXTS for text in fences(page, language))]
    return [pytest.param(page, id=page_name(page)) for page in pages]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the reader may be: beside the examples, with a catalog, a file and a directory of trades of their own."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    alert = next(text for text in fences(ROOT / "docs" / "sinks.md", "sql") if "alert_spread" in text)
    for name in ("trades.cql", "my.cql"):
        (tmp_path / name).write_text((EXAMPLES / "trades.cql").read_text(encoding="utf-8") + "\n" + alert)
    (tmp_path / "incoming").mkdir()
    shutil.copy(EXAMPLES / "trades.csv", tmp_path / "incoming" / "trades.csv")
    return tmp_path


@pytest.fixture
def changed(folder: Path, request: pytest.FixtureRequest) -> Changed:
    """Puts what this machine has in the place of what a reader's machine has."""
    used: dict[str, Callable[[], str]] = {
        "postgresql://loom@db/metrics": lambda: new_database(request.getfixturevalue("postgres"), folder),
        "https://alerts.example.com/hook": lambda: str(request.getfixturevalue("receiver").url).partition("?")[0],
        "/shared/checkpoint": lambda: str(folder / "shared"),
        "--queries 1000000": lambda: "--queries 10000",
        "--queries 250": lambda: "--queries 40",
    }

    def change(text: str) -> str:
        for shown, found in used.items():
            text = text.replace(shown, found()) if shown in text else text
        return text

    return change


def new_database(server: Server, folder: Path) -> str:
    return server.new_database(f"docs_{abs(hash(folder)) % 10**9}").url


def trades_loom(spark: SparkSession, *, follows: bool) -> Loom:
    """The example's catalog over its data, with the queries that the docs speak of."""
    loom = Loom(spark)
    loom.load("trades.cql", queries=False)
    stream = loom.streams["trades"]
    data = find_file_stream(stream, "incoming").read(spark, 1) if follows else read_source(spark, stream, "incoming")
    loom.stream("trades", data)
    over = "FROM trades [RANGE {} SLIDE {}] GROUP BY symbol"
    loom.query("avg_1h", f"SELECT symbol, avg(price) AS p {over.format('1 hour', '1 minute')}")
    loom.query("high_1d", f"SELECT symbol, max(price) AS high {over.format('1 day', '1 hour')}")
    loom.query("trades_5m", f"SELECT symbol, count(*) AS trades {over.format('5 minutes', '1 minute')}")
    return loom


def streaming_names(spark: SparkSession) -> Names:
    return {"loom": trades_loom(spark, follows=True)}


def batch_names(spark: SparkSession) -> Names:
    return {"loom": trades_loom(spark, follows=False), "spark": spark}


#: What the blocks of a page take for given; by default a loom over the trades.
GIVEN: dict[str, Callable[[SparkSession], Names]] = {
    "docs/rows.md": streaming_names,
    "docs/scheduling.md": streaming_names,
    "docs/sinks.md": streaming_names,
}


@pytest.mark.filterwarnings("ignore:stream 'trades'")
@pytest.mark.parametrize("page", blocks("python"))
def test_python_runs_as_it_stands(page: Path, spark: SparkSession, folder: Path, changed: Changed) -> None:
    names = GIVEN.get(page_name(page), batch_names)(spark)
    for text in fences(page, "python"):
        if text in EXAMPLE_TEXTS:
            continue
        exec(compile(changed(text), page_name(page), "exec"), names)
        handle = names.pop("handle", None)
        if isinstance(handle, Handle):
            handle.process_all_available()
            handle.stop()
            assert handle.progress is not None
            assert handle.progress.results > 0
    if "rows" in names:  # what docs/sinks.md reads back from Delta Lake
        assert set(names["rows"]["query"]) == {"avg_1h"}


def lines(page: Path) -> Iterator[str]:
    for block in fences(page, "sh"):
        joined = block.replace("\\\n", " ")
        yield from (line for line in (re.sub(r"\s#.*", "", line).strip() for line in joined.splitlines()) if line)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def served_for_one_round(port: int, handle: Handle, asked: object, view: object) -> None:
    """In place of waiting for Ctrl-C: the service answers, and stops when all files are read."""
    handle.process_all_available()
    status = httpx.get(f"http://127.0.0.1:{port}/api/v1/status", timeout=60).json()
    assert status["queries"] == len(handle.queries)
    handle.stop()


@pytest.mark.parametrize("page", blocks("sh"))
def test_commands_run_line_by_line(
    page: Path,
    windloom: Command,
    folder: Path,
    changed: Changed,
    free_port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("windloom.cli.serve.wait_for_end", partial(served_for_one_round, free_port))
    shutil.copy(write_parquet(folder), folder / "trades.parquet")
    for line in lines(page):
        if any(re.match(pattern, line) for pattern in ELSEWHERE):
            continue
        program, *arguments = shlex.split(changed(line))
        assert program == "windloom", f"nothing runs this line: {line}"
        if "--follow" in arguments:
            arguments += ["--trigger", "now"]
        if arguments[0] == "serve":
            arguments += ["--port", str(free_port)]
        if arguments[0] == "init":
            arguments += ["--out", "made.cql"]
        outcome = windloom(*arguments)
        assert outcome.code == 0, f"{line}:\n{outcome.err}"


def write_parquet(folder: Path) -> Path:
    import pandas as pd

    rows = pd.read_csv(EXAMPLES / "trades.csv", parse_dates=["ts"])
    rows.loc[::100, "ts"] = pd.NaT
    rows.to_parquet(folder / "from_csv.parquet")
    return folder / "from_csv.parquet"


@pytest.mark.parametrize("page", SHOWN, ids=page_name)
def test_json_and_toml_can_be_read(page: Path) -> None:
    for text in fences(page, "json"):
        json.loads(text)
    for text in fences(page, "toml"):
        tomllib.loads(text)


def test_a_block_says_what_it_is_of() -> None:
    """Languages that are run or read; `text` is for people."""
    from support.pages import tokens

    known = {"python", "sh", "sql", "json", "toml", "text"}
    for page in SHOWN:
        assert {token.info for token in tokens(page) if token.type == "fence"} <= known, page_name(page)
