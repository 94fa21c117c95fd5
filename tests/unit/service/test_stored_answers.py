"""Answers read back from the files of the Parquet sink."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.answers import early_piece
from windloom.errors import WindloomError
from windloom.service.stored_answers import StoredAnswers

_MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Ten rounds of two queries, a row each; one of them had another column before."""
    columns = {"query": "string", "window_start": "timestamp", "window_end": "timestamp", "v": "bigint"}
    before = {**{name: kind for name, kind in columns.items() if name != "v"}, "old": "bigint"}
    tables = {"v-1": {"columns": columns, "queries": ["a", "b"]}, "old-1": {"columns": before, "queries": ["a"]}}
    (tmp_path / "_manifest.json").write_text(json.dumps({"tables": tables}))
    for number in range(10):
        write(tmp_path / "v-1", number, "v", ["a", "b"], number)
    write(tmp_path / "old-1", 0, "old", ["a"], 99)
    return tmp_path


def write(folder: Path, number: int, column: str, queries: list[str], value: int) -> None:
    folder.mkdir(exist_ok=True)
    ends = [_MIDNIGHT + timedelta(minutes=number)] * len(queries)
    kind = pa.timestamp("us", tz="UTC")
    rows = {
        "query": pa.array(queries),
        "window_start": pa.array(ends, kind),
        "window_end": pa.array(ends, kind),
        column: pa.array([value] * len(queries), pa.int64()),
    }
    pq.write_table(pa.table(rows), folder / f"round-{number:09d}.parquet")


def values(out: Path, name: str = "a", limit: int = 100, **given: str) -> list[Any]:
    found = StoredAnswers(out).read(name, ["v"], given.get("since"), given.get("until"), limit)
    return [] if found is None else found["v"].to_pylist()


def test_the_latest_rows_in_order_of_time(out: Path) -> None:
    assert values(out, limit=3) == [7, 8, 9]
    assert values(out) == list(range(10))
    assert values(out, name="c") == []


def test_of_early_rows_the_last_report_counts(tmp_path: Path) -> None:
    kinds = {"window_start": "bigint", "window_end": "bigint", "k": "string", "n": "bigint"}
    columns = {"query": "string", **kinds, "report": "string", "as_of": "bigint"}
    (tmp_path / "_manifest.json").write_text(json.dumps({"tables": {"t": {"columns": columns, "queries": ["e"]}}}))
    (tmp_path / "t").mkdir()
    rounds = [
        [("e", 10, "x", 1, "early", 3), ("e", 10, "y", 2, "early", 3)],
        [("e", 10, "x", 3, "final", None), ("e", 10, "y", None, "withdrawn", None), ("e", 20, "x", 4, "early", 12)],
    ]
    for number, rows in enumerate(rounds):
        pq.write_table(early_piece(*rows)[1], tmp_path / "t" / f"round-{number:09d}.parquet")
    found = StoredAnswers(tmp_path).read("e", list(columns)[3:], None, None, 10, replacing=["k"])
    assert found is not None
    assert found["n"].to_pylist() == [3, 4]


def test_a_group_is_found_by_its_value_as_the_answers_show_it(tmp_path: Path) -> None:
    groups: dict[str, pa.Array] = {
        "country": pa.array(["DE", "FR", None]).dictionary_encode(),
        "shop": pa.array([1, 2, 3], pa.int64()),
        "open": pa.array([True, False, None]),
        "share": pa.array(["1.50", "2.50", "3.50"]).cast(pa.decimal128(10, 2)),
        "day": pa.array([_MIDNIGHT.date()] * 3),
        "at": pa.array([_MIDNIGHT + timedelta(hours=i) for i in range(3)], pa.timestamp("us", tz="UTC")),
        "key": pa.array([b"\x00", b"a", b"b"]),
    }
    columns = {"query": "string", "window_start": "timestamp", "window_end": "timestamp", **dict.fromkeys(groups, "")}
    manifest = {"tables": {"t": {"columns": {**columns, "n": "bigint"}, "queries": ["a"]}}}
    (tmp_path / "_manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "t").mkdir()
    fixed = {"query": pa.array(["a"] * 3), "window_start": groups["at"], "window_end": groups["at"]}
    pq.write_table(pa.table({**fixed, **groups, "n": pa.array([0, 1, 2])}), tmp_path / "t" / "round-000000000.parquet")

    def found(**wanted: list[str]) -> list[int]:
        rows = StoredAnswers(tmp_path).read("a", [*groups, "n"], None, None, 100, groups=wanted)
        return [] if rows is None else list(rows["n"].to_pylist())

    assert found(country=["DE"]) == [0]
    assert found(country=["DE", "FR"], shop=["2", "3"]) == [1]
    assert found(country=["IT"]) == []
    assert (found(open=["false"]), found(share=["2.50"]), found(day=["2026-01-05"])) == ([1], [1], [0, 1, 2])
    assert (found(at=["2026-01-05T01:00:00Z"]), found(key=["61"])) == ([1], [1])
    for name, text in (("shop", "two"), ("open", "perhaps"), ("day", "Monday"), ("key", "z"), ("share", "x")):
        with pytest.raises(WindloomError, match=f"no group of '{name}' can be '{text}'"):
            found(**{name: [text]})


def test_a_range_is_by_the_end_of_windows(out: Path) -> None:
    assert values(out, since="2026-01-05T00:03:00Z", until="2026-01-05T00:05:00+00:00") == [3, 4]
    assert values(out, since="2026-01-05 00:08:00") == [8, 9]


def test_files_without_windows_of_the_range_are_not_read(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    table_of = StoredAnswers._table
    monkeypatch.setattr(StoredAnswers, "_table", lambda self, file: (read.append(file.stem), table_of(self, file))[1])
    assert values(out, since="2026-01-05T00:03:00Z", until="2026-01-05T00:05:00Z") == [3, 4]
    assert read == ["round-000000004", "round-000000003"]


def test_a_bound_on_files_holds_once_a_row_is_found(out: Path) -> None:
    write(out / "v-1", 10, "v", ["b"], 10)
    stored = StoredAnswers(out)
    latest = stored.read("a", ["v"], None, None, 100, most_files=1)
    assert latest is not None
    assert latest["v"].to_pylist() == [9]


def test_a_range_of_windows_of_rows_is_by_position(out: Path) -> None:
    columns = {"query": "string", "window_start": "bigint", "window_end": "bigint", "n": "bigint"}
    (out / "_manifest.json").write_text(json.dumps({"tables": {"n-1": {"columns": columns, "queries": ["rows"]}}}))
    (out / "n-1").mkdir()
    for number in range(4):
        rows = {"query": ["rows"], "window_start": [number * 10], "window_end": [number * 10 + 10], "n": [number]}
        pq.write_table(pa.table(rows), out / "n-1" / f"round-{number:09d}.parquet")
    found = StoredAnswers(out).read("rows", ["n"], "20", "40", 10)
    assert found is not None
    assert found["n"].to_pylist() == [1, 2]


def test_an_instant_is_refused_where_windows_are_of_rows(tmp_path: Path) -> None:
    columns = {"query": "string", "window_start": "bigint", "window_end": "bigint", "v": "bigint"}
    (tmp_path / "_manifest.json").write_text(json.dumps({"tables": {"t": {"columns": columns, "queries": ["a"]}}}))
    (tmp_path / "t").mkdir()
    rows = {"query": ["a", "a"], "window_start": [0, 10], "window_end": [10, 20], "v": [1, 2]}
    pq.write_table(pa.table(rows), tmp_path / "t" / "round-000000000.parquet")
    assert values(tmp_path, since="20") == [2]
    with pytest.raises(WindloomError, match="'since' is not a position") as caught:
        values(tmp_path, since="2026-01-05T08:30:00Z")
    assert caught.value.hint == "give the number of a row, for example since=1000"


@pytest.mark.parametrize("since", ["yesterday", "", "9" * 30])
def test_what_is_no_instant_is_refused(out: Path, since: str) -> None:
    with pytest.raises(WindloomError, match="'since' is not an instant"):
        values(out, since=since)


def test_a_round_that_was_written_again_is_read_again(out: Path) -> None:
    stored = StoredAnswers(out)
    first = stored.read("a", ["v"], None, None, 1)
    assert first is not None
    write(out / "v-1", 9, "v", ["a", "b"], 1_000)
    again = stored.read("a", ["v"], None, None, 1)
    assert again is not None
    assert (first["v"].to_pylist(), again["v"].to_pylist()) == ([9], [1_000])


def test_nothing_is_there_before_the_first_round(tmp_path: Path) -> None:
    assert values(tmp_path) == []
