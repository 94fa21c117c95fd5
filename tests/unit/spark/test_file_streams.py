"""Looking at a directory to follow, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.trades import STREAM, csv_text
from windloom.errors import WindloomError
from windloom.language.catalog import parse_catalog
from windloom.model import Stream
from windloom.spark.sources.files import find_file_stream


@pytest.fixture
def trades() -> Stream:
    (declared,) = parse_catalog(STREAM).streams
    return declared.stream


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(csv_text())


def test_files_that_are_there_tell_the_format_and_what_later_ones_end_in(trades: Stream, tmp_path: Path) -> None:
    put(tmp_path, "2026.01.05.csv")
    found = find_file_stream(trades, str(tmp_path))
    assert (found.source.format, found.source.has_header, found.pattern) == ("csv", True, "*.csv")
    assert not found.is_typed
    put(tmp_path, "b.CSV", "_c.json", ".d.json")
    assert find_file_stream(trades, str(tmp_path)).pattern == "*{.CSV,.csv}"


def test_a_pattern_tells_what_counts_even_before_a_file_is_there(trades: Stream, tmp_path: Path) -> None:
    found = find_file_stream(trades, f"{tmp_path}/*.tsv")
    assert (found.source.format, found.source.separator, found.source.has_header) == ("csv", "\t", True)
    put(tmp_path, "a.csv", "a.json")
    assert find_file_stream(trades, f"{tmp_path}/*.csv").source.fields == ("ts", "symbol", "price", "volume")
    remote = find_file_stream(trades, "hdfs://host/in/*.parquet")
    assert (remote.source.path, remote.pattern, remote.is_typed) == ("hdfs://host/in", "*.parquet", False)


def test_a_place_of_which_nothing_is_known_is_refused(trades: Stream, tmp_path: Path) -> None:
    for path in (str(tmp_path), "hdfs://host/in"):
        with pytest.raises(WindloomError, match="nothing tells the format") as refused:
            find_file_stream(trades, path)
        assert f"'trades={path}/*.parquet'" in refused.value.hint
