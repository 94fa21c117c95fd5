"""Data from files: columns by name, types by the catalog, and no value that is silently lost."""

from __future__ import annotations

import bz2
import datetime
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windloom import Loom, WindloomError
from windloom.language.catalog import parse_catalog
from windloom.model import Stream
from windloom.spark.sources.read import find_source, read_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = "CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT, x DOUBLE) TIME ts;"
NOON = datetime.datetime(2026, 1, 5, 12, tzinfo=datetime.UTC)
ROW = (NOON, "a", 1, 1.5)


def stream(text: str = DECLARED) -> Stream:
    return parse_catalog(text).streams[0].stream


def put(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def read(spark: SparkSession, path: str, declared: str = DECLARED) -> list[tuple[Any, ...]]:
    frame = read_source(spark, stream(declared), path)
    return [tuple(row.values()) for row in frame.toArrow().to_pylist()]


CSV = {
    "a header": ("ts,k,v,x\n2026-01-05 12:00:00,a,1,1.5\n", ROW),
    "no header": ("2026-01-05 12:00:00,a,1,1.5\n", ROW),
    "a header in another order": ("x,v,k,ts\n1.5,1,a,2026-01-05 12:00:00\n", ROW),
    "a header in another case and with spaces": ("TS, K ,V,X\n2026-01-05 12:00:00,a,1,1.5\n", ROW),
    "columns that are not declared": ("a,b,,ts,b,c,k,d,v,e,x,\n1,2,3,2026-01-05 12:00:00,4,5,a,6,1,7,1.5,8\n", ROW),
    "a byte-order mark": ("\ufeffts,k,v,x\n2026-01-05 12:00:00,a,1,1.5\n", ROW),
    "quotes": ('"ts","k","v","x"\n"2026-01-05T12:00:00Z","say ""hi"", you",1,"1.5"\n', (NOON, 'say "hi", you', 1, 1.5)),
    "fields that are missing": ("ts,k,v,x\n2026-01-05 12:00:00,,,\n", (NOON, None, None, None)),
    "microseconds": ("2026-01-05 12:00:00.000001,a,1,1.5\n", (NOON + datetime.timedelta(microseconds=1), "a", 1, 1.5)),
    "lines that end as on Windows": ("ts,k,v,x\r\n2026-01-05 12:00:00,a,1,1.5\r\n", ROW),
}  # fmt: skip


@pytest.mark.parametrize("case", CSV)
def test_csv(spark: SparkSession, tmp_path: Path, case: str) -> None:
    text, row = CSV[case]
    assert read(spark, put(tmp_path / "data.csv", text)) == [row]


@pytest.mark.parametrize("text", ["", "ts,k,v,x\n"], ids=["no line", "only a header"])
def test_csv_without_data_is_empty(spark: SparkSession, tmp_path: Path, text: str) -> None:
    assert read(spark, put(tmp_path / "data.csv", text)) == []


def test_packed_files_and_other_endings(spark: SparkSession, tmp_path: Path) -> None:
    text = CSV["a header in another order"][0]
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "b.csv.bz2").write_bytes(bz2.compress(text.encode()))
    put(tmp_path / "c.CSV", text)
    put(tmp_path / "d.tsv", text.replace(",", "\t"))
    for name in ("a.csv.gz", "b.csv.bz2", "c.CSV", "d.tsv"):
        assert read(spark, str(tmp_path / name)) == [ROW]


def test_a_directory_of_csv_is_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        put(tmp_path / name, CSV["a header in another order"][0])
    put(tmp_path / "_SUCCESS", "")
    put(tmp_path / "empty.csv", "")
    assert read(spark, str(tmp_path)) == [ROW, ROW]


JSON_ROW = {"ts": "2026-01-05T12:00:00Z", "k": "a", "v": 1, "x": 1.5}


def test_json_lines_by_name_without_case(spark: SparkSession, tmp_path: Path) -> None:
    lines = [JSON_ROW, {"ts": "2026-01-05 12:00:00", "x": None, "more": [1]}, {"ts": "2026-01-05 12:00:00"}]
    path = put(tmp_path / "data.jsonl", "\n".join(map(json.dumps, lines)))
    assert read(spark, path) == [ROW, (NOON, None, None, None), (NOON, None, None, None)]
    path = put(tmp_path / "upper.json", json.dumps({name.upper(): value for name, value in JSON_ROW.items()}))
    assert read(spark, path) == [ROW]


def test_fields_of_structs_keep_their_spelling(spark: SparkSession, tmp_path: Path) -> None:
    path = put(tmp_path / "data.jsonl", '{"ts": "2026-01-05 12:00:00", "meta": {"Code": 7, "tags": ["a"]}}')
    declared = "CREATE STREAM s (ts TIMESTAMP, meta STRUCT<Code: INT, tags: ARRAY<STRING>>) TIME ts;"
    assert read(spark, path, declared) == [(NOON, {"Code": 7, "tags": ["a"]})]


def test_parquet_brings_its_own_types(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"x": [1.5], "ts": [NOON], "k": ["a"], "v": pa.array([1], pa.int16())}), tmp_path / "p.parquet"
    )
    frame = read_source(spark, stream(), str(tmp_path))
    assert dict(frame.dtypes)["v"] == "smallint"


def test_paths_are_literal_and_those_of_python(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "[a] {b} *? c"
    folder.mkdir()
    put(folder / "data.csv", CSV["a header"][0])
    monkeypatch.chdir(folder)
    assert read(spark, "data.csv") == [ROW]
    assert read(spark, str(folder)) == [ROW]


REFUSED = {
    "a declared column that is missing": ("d.csv", "ts,k,v\n", "with a column 'x', and its data has no such column"),
    "a column that is there twice": ("d.csv", "ts,k,v,x,X\n", "with a column 'x', and its data has more than one"),
    "too few columns and no header": ("d.csv", "2026-01-05 12:00:00,a\n", "does not have the declared columns"),
    "too many columns and no header": ("d.csv", "2026-01-05 12:00:00,a,1,2,3\n", "does not have the declared columns"),
    "a field of nearly the same name": ("d.jsonl", '{"ts": "2026-01-05", "kk": "a"}', "with a column 'k' that"),
    "a time under another name": ("d.jsonl", '{"at": "2026-01-05", "k": "a"}', "with a column 'ts' that its data"),
    "an ending that says nothing": ("d.txt", "", "cannot tell the format of"),
    "no ending": ("data", "", "cannot tell the format of"),
    "text that is not UTF-8": ("d.csv", "\udce4", "cannot read"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED)
def test_mistakes_that_show_without_spark(tmp_path: Path, mistake: str) -> None:
    name, text, words = REFUSED[mistake]
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(WindloomError) as caught:
        find_source(stream(), str(tmp_path / name))
    assert words in caught.value.message
    assert "stream 's'" in caught.value.message
    assert caught.value.detail
    assert caught.value.hint


def test_directories_that_hold_nothing_or_a_mixture_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WindloomError, match="holds no data"):
        find_source(stream(), str(tmp_path))
    put(tmp_path / "a.csv", CSV["a header"][0])
    put(tmp_path / "b.jsonl", "{}")
    with pytest.raises(WindloomError, match="holds files of several formats"):
        find_source(stream(), str(tmp_path))
    (tmp_path / "b.jsonl").unlink()
    put(tmp_path / "c.csv", CSV["a header in another order"][0])
    with pytest.raises(WindloomError, match="have different columns"):
        find_source(stream(), str(tmp_path))


BROKEN = {
    "a time that cannot be read": ("d.csv", "ts,k,v,x\nnoon,a,1,1.5\n", "'noon'"),
    "a number that cannot be read": ("d.csv", "ts,k,v,x\n2026-01-05,a,one,1.5\n", '"one"'),
    "a line that breaks off": ("d.csv", "ts,k,v,x\n2026-01-05,a\n", "Malformed CSV record"),
    "a line that is no JSON": ("d.jsonl", '{"ts": "2026-01-05"}\nnoon\n', "Unrecognized token 'noon'"),
    "JSON over many lines": ("d.json", json.dumps([JSON_ROW], indent=1), "end-of-input"),
    "a value of another type": ("d.jsonl", '{"ts": "2026-01-05", "v": "one"}', "field name 'v'"),
    "a file that is no Parquet": ("d.parquet", "none", "is not a Parquet file"),
}


@pytest.mark.parametrize("mistake", BROKEN)
def test_mistakes_that_only_reading_shows(spark: SparkSession, tmp_path: Path, mistake: str) -> None:
    name, text, words = BROKEN[mistake]
    path = put(tmp_path / name, text)
    put(tmp_path / "c.cql", DECLARED)
    loom = Loom(spark)
    loom.load(tmp_path / "c.cql")
    loom.query("q", "SELECT k, max(v) AS v, sum(x) AS x FROM s [TUMBLE 1 hour] GROUP BY k")

    def read_and_run() -> None:
        loom.stream("s", read_source(spark, loom.streams["s"], path))
        loom.run()

    with pytest.raises(WindloomError) as caught:
        read_and_run()
    assert caught.value.message == "Spark cannot read stream 's'"
    assert name in caught.value.detail, "the file is named"
    assert words in caught.value.detail
