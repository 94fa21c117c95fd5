"""Sinks: a round that comes again replaces itself, and what is read back is what was written."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from support.answers import COLUMNS, TABLES, Given, piece, place
from windloom.checkpoint.storage import LocalStorage
from windloom.errors import SinkDownError, WindloomError
from windloom.sinks.live import LiveSink
from windloom.sinks.memory import MemorySink
from windloom.sinks.parquet import MANIFEST, ParquetSink
from windloom.sinks.registry import SINKS, SinkChoice, choose_sinks, find_sink, sink, sink_names
from windloom.sinks.sink import NotReadBackError, Sink, TableInfo


def parquet(folder: Path, checkpoint: str = "c1") -> ParquetSink:
    return ParquetSink(LocalStorage(folder), str(folder), checkpoint)


def counts(sink: Sink) -> list[int]:
    rows = sink.rows("t")
    return [] if rows is None else sorted(rows["n"].to_pylist())


@pytest.mark.parametrize("kind", ["memory", "parquet"])
def test_a_round_that_comes_again_replaces_itself(tmp_path: Path, kind: str) -> None:
    sink: Sink = MemorySink() if kind == "memory" else parquet(tmp_path)
    assert sink.rows("t") is None
    sink.write(0, Given([piece(("a", 10, "x", 1)), piece(("b", 10, None, 2))], TABLES))
    sink.write(1, Given([piece(("a", 20, "x", 3))], TABLES))
    sink.write(1, Given([piece(("a", 20, "x", 3))], TABLES))
    assert counts(sink) == [1, 2, 3]
    sink.write(2, Given([], TABLES))
    sink.close()
    assert counts(sink) == [1, 2, 3]


def test_parquet_answers_belong_to_one_checkpoint_and_describe_every_query(tmp_path: Path) -> None:
    parquet(tmp_path).write(0, Given([piece(("a", 10, "x", 1))], TABLES))
    gone = {"t": TableInfo(COLUMNS, {"a": ("k",)})}
    again = parquet(tmp_path)
    again.write(1, Given([piece(("a", 20, "x", 2))], gone))
    assert counts(again) == [1, 2]
    described = json.loads((tmp_path / MANIFEST).read_text())["tables"]["table=t"]
    assert described == {"columns": COLUMNS, "queries": ["a", "b"]}
    with pytest.raises(WindloomError, match="holds the answers of another run"):
        parquet(tmp_path, "c2")


def test_the_live_sink_holds_the_latest_row_of_each_query_and_group(tmp_path: Path) -> None:
    sink = LiveSink(LocalStorage(tmp_path))
    sink.write(0, Given([piece(("a", 10, "x", 1), ("a", 20, "x", 2), ("a", 10, None, 3), ("b", 10, "x", 4))], TABLES))
    assert counts(sink) == [2, 3, 4]
    # An older window of a group, as a query that answers from history reports it, is not the latest.
    for _ in range(2):
        sink.write(1, Given([piece(("a", 5, "x", 5), ("b", 20, "y", 6))], TABLES))
    assert counts(sink) == [2, 3, 6]
    assert counts(LiveSink(LocalStorage(tmp_path))) == [2, 3, 6]


def test_the_live_sink_forgets_queries_that_are_gone(tmp_path: Path) -> None:
    sink = LiveSink(LocalStorage(tmp_path))
    sink.write(0, Given([piece(("a", 10, "x", 1), ("b", 10, "x", 2))], TABLES))
    sink.write(1, Given([], {"t": TableInfo(COLUMNS, {"b": ()})}))
    assert counts(sink) == [2]
    sink.write(2, Given([], {}))
    assert sink.rows("t") is None
    assert not list(tmp_path.glob("*.parquet"))


def opened(folder: Path, choice: SinkChoice, path: Path | None = None) -> Sink:
    (opener,) = choose_sinks(choice, path, folder / "checkpoint").values()
    return opener(place(folder))


@pytest.mark.parametrize("name", [name for name in SINKS if find_sink(name).target in (None, "path")])
def test_every_sink_of_the_registry_opens_takes_a_round_again_and_reads_back(tmp_path: Path, name: str) -> None:
    path = None if find_sink(name).target is None else tmp_path / "out"
    sink = opened(tmp_path, name, path)
    for _ in range(2):
        sink.write(0, Given([piece(("a", 10, "x", 1), ("b", 10, "x", 2))], TABLES))
    assert counts(sink) == [1, 2]
    sink.close()
    assert (tmp_path / "out").exists() == (path is not None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("sqlite", None, None), "unknown sink 'sqlite'"),
        (([], None, None), "a stream needs a sink"),
        (("parquet", "out", None), "sink='parquet' needs a place of its own, and a checkpoint"),
        ((["live", "parquet"], None, "c"), "sink='parquet' needs a place of its own, and a checkpoint"),
        ((["memory", print], "out", "c"), "path 'out' is not used"),
        ((sink("parquet", "here"), "out", "c"), "path 'out' is not used"),
        ((sink("live", "here"), None, "c"), "the sink 'live' has no target"),
        ((sink("parquet", "here", path="there"), None, "c"), "the target of the sink 'parquet' is given twice"),
        ((sink("parquet", "here", pth="there"), None, "c"), "the sink 'parquet' has no option 'pth'"),
    ],
)
def test_choices_that_cannot_be_are_refused(given: tuple[Any, Any, Any], message: str) -> None:
    with pytest.raises(WindloomError) as caught:
        choose_sinks(*given)
    assert caught.value.message == message
    assert caught.value.hint


def test_one_sink_several_or_a_function_are_chosen(tmp_path: Path) -> None:
    assert list(choose_sinks("memory", None, None)) == ["memory"]
    assert list(choose_sinks(["live", print], None, "c")) == ["live", "function"]
    several = [sink("parquet", tmp_path / "a"), sink("parquet", path=tmp_path / "b"), "memory"]
    chosen = choose_sinks(several, None, "c")
    assert list(chosen) == ["parquet", "parquet 2", "memory"]
    for name in ("parquet", "parquet 2"):
        chosen[name](place(tmp_path)).write(0, Given([piece(("a", 10, "x", 1))], TABLES))
    assert (tmp_path / "a" / MANIFEST).exists()
    assert (tmp_path / "b" / MANIFEST).exists()


def shown_sink() -> str:
    """The sink that docs/sinks.md shows."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "sinks.md").read_text()
    (block,) = (
        block_text
        for block_text in re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        if "class JsonLinesSink" in block_text
    )
    return str(block)


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that brings sinks."""
    site = tmp_path / "site"
    about = site / "brought_sinks-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "brought_sinks.py").write_text(shown_sink() + "\n\nclass Nothing:\n    target = None\n")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-sinks\nVersion: 1.0\n")
    points = {"jsonl": "JsonLinesSink", "nothing": "Nothing", "gone": "Gone", "parquet": "Nothing"}
    lines = [f"{name} = brought_sinks:{value}" for name, value in points.items()]
    lines += ["absent = a_package_that_is_not_there:Sink"]
    (about / "entry_points.txt").write_text("\n".join(["[windloom.sinks]", *lines, ""]))
    monkeypatch.syspath_prepend(str(site))


@pytest.mark.usefixtures("brought")
def test_an_installed_package_brings_a_sink_of_its_own(tmp_path: Path) -> None:
    assert {"parquet", "jsonl"} <= set(sink_names())
    assert find_sink("parquet") is ParquetSink, "nobody takes a name of ours"
    own = opened(tmp_path, sink("jsonl", tmp_path / "out"))
    for _ in range(2):
        own.write(0, Given([piece(("a", 10, "x", 1)), piece(("b", 10, None, 2))], TABLES))
    lines = (tmp_path / "out" / "t-000000000.jsonl").read_text().splitlines()
    assert [json.loads(line)["n"] for line in lines] == [1, 2]
    with pytest.raises(NotReadBackError):
        own.rows("t")
    own.close()
    with pytest.raises(WindloomError, match="the sink 'jsonl' has no option 'indent'"):
        choose_sinks(sink("jsonl", "out", indent=2), None, "c")
    (tmp_path / "share").write_text("a file, and no directory")
    with pytest.raises(SinkDownError, match="the share is away"):
        opened(tmp_path, sink("jsonl", tmp_path / "share")).write(1, Given([], TABLES))


@pytest.mark.usefixtures("brought")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing", "'brought_sinks:Nothing' is not a sink"),
        ("gone", "the sink 'gone' cannot be loaded"),
        ("absent", "the sink 'absent' needs a package that is not installed"),
    ],
)
def test_an_entry_point_that_brings_no_sink_is_named(name: str, words: str) -> None:
    with pytest.raises(WindloomError) as caught:
        choose_sinks(name, None, None)
    assert caught.value.message == words
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "package", "extra"), [("delta", "deltalake", "delta"), ("postgres", "psycopg", "postgres")]
)
def test_a_package_that_is_not_installed_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str, extra: str
) -> None:
    for module in [name_ for name_ in sys.modules if name_.startswith((package, f"windloom.sinks.{name}"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    with pytest.raises(WindloomError) as caught:
        choose_sinks(sink(name, "there"), None, "c")
    assert caught.value.message == f"the sink '{name}' needs a package that is not installed"
    assert caught.value.detail == f"'{package}' is missing"
    assert caught.value.hint == f"pip install 'windloom[{extra}]'"
