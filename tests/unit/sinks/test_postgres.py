"""The PostgreSQL sink against a real server: each row once, values as they are, and what it says when it cannot."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from support.answers import COLUMNS, EARLY_TABLES, TABLES, Given, early_piece, piece, place
from support.micro_batches import CrashError, crash_after
from support.postgres import Server
from windloom.checkpoint.storage import watched
from windloom.errors import SinkDownError, WindloomError
from windloom.sinks.postgres import ROUNDS, PostgresSink
from windloom.sinks.sink import NotReadBackError, SinkPlace, TableInfo

_SCHEMAS = count()


class Opened:
    """A schema of its own, and the sink over it."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder, self.schema = server, folder, f"Schema {next(_SCHEMAS)}"
        self._open: list[PostgresSink] = []
        self.sink = self.again()

    def again(self, checkpoint: str = "c1", **options: Any) -> PostgresSink:
        given = {"url": self.server.url, "schema": self.schema, **options}
        found = PostgresSink.open(SinkPlace(None, str(self.folder), checkpoint), **given)  # type: ignore[arg-type]
        self._open.append(found)
        return found

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        for sink in self._open:
            sink.close()

    def rows(self, view: str, columns: str = "*") -> list[tuple[Any, ...]]:
        return sorted(self.server.rows(f'SELECT {columns} FROM "{self.schema}"."{view}"'), key=repr)

    @property
    def round(self) -> int:
        """The last round that is there; -1 before the first one, which makes the schema."""
        if self.server.rows(f"SELECT to_regclass('\"{self.schema}\".{ROUNDS}')")[0][0] is None:
            return -1
        return int(self.server.rows(f'SELECT round FROM "{self.schema}".{ROUNDS}')[0][0])


@pytest.fixture
def opened(postgres: Server, tmp_path: Path) -> Iterator[Opened]:
    with Opened(postgres, tmp_path) as found:
        yield found


def test_a_query_is_a_view_and_a_round_that_comes_again_is_left_out(opened: Opened) -> None:
    first = Given([piece(("a", 10, "x", 1), ("a", 10, None, 5)), piece(("b", 10, "y", 2))], TABLES)
    for _ in range(2):
        opened.sink.write(0, first)
        assert opened.round == 0
    assert opened.rows("a") == [(0, 10, "x", 1), (0, 10, None, 5)]
    assert opened.rows("b") == [(0, 10, "y", 2)]
    opened.sink.write(1, Given([], TABLES))
    opened.again().write(2, Given([piece(("a", 20, "x", 3))], TABLES))
    assert opened.round == 2
    assert opened.rows("a", "n") == [(1,), (3,), (5,)]


def test_a_window_that_is_reported_once_more_replaces_its_row_also_of_the_group_null(opened: Opened) -> None:
    opened.sink.write(0, Given([piece(("a", 10, "x", 1), ("a", 10, None, 2), ("b", 10, "x", 3))], TABLES))
    # What is a group of one query is an aggregate of the other.
    opened.sink.write(1, Given([piece(("a", 10, None, 7), ("a", 10, "y", 8), ("b", 10, "z", 9))], TABLES))
    assert opened.rows("a", "k, n") == [("x", 1), ("y", 8), (None, 7)]
    assert opened.rows("b", "k, n") == [("z", 9)]


def test_a_provisional_row_is_replaced_and_deleted_when_it_is_withdrawn(opened: Opened) -> None:
    early = [("e", 10, "x", 1, "early", 3), ("e", 10, None, 2, "early", 3), ("f", 10, "x", 8, "withdrawn", 3)]
    opened.sink.write(0, Given([early_piece(*early)], EARLY_TABLES))
    assert opened.rows("e", "k, n, report") == [("x", 1, "early"), (None, 2, "early")]
    last = [("e", 10, "x", 4, "final", None), ("e", 10, None, None, "withdrawn", None)]
    opened.sink.write(1, Given([early_piece(*last)], EARLY_TABLES))
    assert opened.rows("e", "k, n, report, as_of") == [("x", 4, "final", None)]
    assert opened.rows("f", "n, report") == [(8, "withdrawn")]  # a column of its own that has this name


def test_a_query_that_was_replaced_shows_its_new_columns(opened: Opened) -> None:
    opened.sink.write(0, Given([piece(("a", 10, "x", 1))], TABLES))
    columns = {"query": "string", "window_start": "bigint", "window_end": "bigint", "p": "double"}
    table = pa.table({"query": ["a"], "window_start": [0], "window_end": [20], "p": [0.5]})
    other = {"u": TableInfo(columns, {"a": ()}), "t": TableInfo(COLUMNS, {"b": ()})}
    opened.sink.write(1, Given([("u", table)], other))
    assert opened.rows("a") == [(0, 20, 0.5)]
    # A view of somebody's own over ours does not keep a stream from starting again.
    opened.server.execute(f'CREATE VIEW "{opened.schema}".mine AS SELECT p FROM "{opened.schema}".a')
    opened.again().write(2, Given([("u", table)], other))
    opened.again()
    with pytest.raises(WindloomError, match="refuses the round") as caught:
        opened.sink.write(3, Given([], TABLES))
    assert "drop what depends on the view" in caught.value.hint


def test_a_name_that_a_table_has_or_that_is_too_long_is_changed(opened: Opened) -> None:
    names = [ROUNDS, "q" * 70, 'say "hi"; DROP TABLE x']
    infos = {"t": TableInfo(COLUMNS, dict.fromkeys(names, ("k",)))}
    opened.sink.write(0, Given([piece(*((name, 10, "x", 1) for name in names))], infos))
    question = "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = %s"
    views = {row[0] for row in opened.server.rows(f"{question} AND relkind = 'v'", [opened.schema])}
    assert names[2] in views
    assert len(views) == 3
    assert any(view.startswith(f"{ROUNDS}_") for view in views)
    assert all(len(view) <= 63 for view in views)


VALUES: dict[str, tuple[pa.DataType, list[Any], list[Any]]] = {
    "tinyint": (pa.int8(), [-128, None], [-128, None]),
    "bigint": (pa.int64(), [2**63 - 1, -(2**63)], [2**63 - 1, -(2**63)]),
    "float": (pa.float32(), [0.1, float("-inf")], [pytest.approx(0.1, rel=1e-7), float("-inf")]),
    "double": (pa.float64(), [0.1, 5e-324], [0.1, 5e-324]),
    "boolean": (pa.bool_(), [True, None], [True, None]),
    "string": (pa.string(), ['a"b,\nü\\.', ""], ['a"b,\nü\\.', ""]),
    "binary": (pa.binary(), [b"\x00\xff", b""], [b"\x00\xff", b""]),
    "date": (pa.date32(), [datetime.date(2026, 1, 5), None], [datetime.date(2026, 1, 5), None]),
    "timestamp_ntz": (pa.timestamp("us"), [1, None], [datetime.datetime(1970, 1, 1, 0, 0, 0, 1), None]),
    "decimal(38,2)": (pa.decimal128(38, 2), [Decimal("1e35"), Decimal("-0.05")], [Decimal("1e35"), Decimal("-0.05")]),
    "array<struct<value:double,count:bigint>>": (
        pa.list_(pa.struct([("value", pa.float64()), ("count", pa.int64())])),
        [[{"value": float("nan"), "count": 1}], []],
        [[{"value": "NaN", "count": 1}], []],
    ),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_arrive_as_they_are(opened: Opened, kind: str) -> None:
    arrow, given, expected = VALUES[kind]
    columns = {"query": "string", "window_start": "timestamp", "window_end": "timestamp", "v": kind}
    ends = pa.array([10**15, 10**15 + 1], pa.timestamp("us", tz="UTC"))
    rows = pa.table({"query": ["a", "a"], "window_start": ends, "window_end": ends, "v": pa.array(given, arrow)})
    opened.sink.write(0, Given([("t", rows)], {"t": TableInfo(columns, {"a": ()})}))
    found = opened.server.rows(f'SELECT v, window_end FROM "{opened.schema}".a ORDER BY window_end')
    assert [row[0] for row in found] == expected
    assert found[1][1] == datetime.datetime.fromtimestamp(10**9, datetime.UTC) + datetime.timedelta(microseconds=1)


def test_a_crash_between_any_two_statements_leaves_the_whole_round_or_nothing(opened: Opened) -> None:
    given = Given([piece(("a", 10, "x", 1)), piece(("b", 10, "y", 2))], TABLES)
    passed: list[str] = []
    with watched(passed.append):
        opened.sink.write(0, given)
    for number in range(len(passed)):
        with Opened(opened.server, opened.folder) as fresh:
            with pytest.raises(CrashError), crash_after(number):
                fresh.sink.write(0, given)
            assert fresh.round == (0 if number == len(passed) - 1 else -1)
            fresh.again().write(0, given)
            assert fresh.rows("a", "n") == [(1,)]
            assert fresh.rows("b", "n") == [(2,)]


def test_a_server_that_goes_away_is_down_and_takes_the_round_when_it_is_back(opened: Opened) -> None:
    first, second = (Given([piece(("a", end, "x", 1))], TABLES) for end in (10, 20))
    opened.sink.write(0, first)
    opened.server.crash()
    try:
        with pytest.raises(SinkDownError, match="does not take the round") as caught:
            opened.sink.write(1, second)
        assert f"127.0.0.1:{opened.server.port}" in caught.value.message
        with pytest.raises(WindloomError) as refused:
            opened.again()
        assert not isinstance(refused.value, SinkDownError), "at the start, a wrong address is likelier"
    finally:
        opened.server.start()
    opened.sink.write(1, second)
    assert opened.round == 1
    opened.server.stop()
    opened.server.start()
    opened.sink.write(2, Given([], TABLES))  # a connection that was dropped between rounds is no outage
    assert opened.rows("a", "window_end") == [(10,), (20,)]


def test_a_schema_belongs_to_one_checkpoint_and_to_its_newest_copy(opened: Opened) -> None:
    opened.sink.write(3, Given([piece(("a", 10, "x", 1))], TABLES))
    with pytest.raises(WindloomError, match="holds the answers of another stream") as caught:
        opened.again("c2")
    assert "give another schema" in caught.value.hint
    with pytest.raises(WindloomError, match="has come further than the checkpoint") as caught:
        opened.sink.write(2, Given([piece(("a", 10, "x", 1))], TABLES))
    assert "it holds round 3, and the checkpoint goes on with round 2" in caught.value.detail
    with pytest.raises(NotReadBackError):
        opened.sink.rows("t")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "postgresql://nobody@127.0.0.1:1/x?connect_timeout=1"}, "'127.0.0.1:1', 'x' does not take the round"),
        ({"url": "postgresql://me:secret@[oops/x"}, "the address of PostgreSQL cannot be read"),
    ],
)
def test_an_address_that_cannot_be_used_is_named_without_its_password(
    tmp_path: Path, options: dict[str, str], words: str
) -> None:
    with pytest.raises(WindloomError) as caught:
        PostgresSink.open(place(tmp_path), **options)
    assert words in caught.value.message
    assert caught.value.hint
    assert "secret" not in str(caught.value)


def test_rights_that_are_missing_are_named(opened: Opened) -> None:
    opened.server.execute("DROP ROLE IF EXISTS reader")
    opened.server.execute("CREATE ROLE reader LOGIN")
    with pytest.raises(WindloomError) as caught:
        opened.again(url=opened.server.url.replace("windloom@", "reader@"))
    assert "permission denied" in caught.value.detail
    assert "grant the rights" in caught.value.hint
