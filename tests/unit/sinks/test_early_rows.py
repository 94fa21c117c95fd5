"""Provisional rows in sinks: each replaces the one before it of its window and group, until the last word."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from support.answers import CHANGED_TABLES, EARLY_TABLES, Given, early_piece, piece
from windloom.checkpoint.storage import LocalStorage
from windloom.explain.update_patterns import sink_text
from windloom.sinks.live import LiveSink
from windloom.sinks.sink import present, replaced

FIRST = early_piece(
    ("e", 10, "x", 1, "early", 3),
    ("e", 10, None, 2, "early", 3),
    ("e", 20, "x", 3, "early", 3),
    ("f", 10, "x", 8, "withdrawn", 3),  # of a query that has such values by chance
)
SECOND = early_piece(
    ("e", 10, "x", 4, "final", None),
    ("e", 10, None, None, "withdrawn", None),
    ("e", 20, None, 5, "early", 12),
    ("f", 20, "x", 9, "withdrawn", 3),
)
THIRD = early_piece(("e", 20, "x", None, "withdrawn", 15), ("e", 20, None, 6, "final", None))


def told(rows: pa.Table | None, query: str = "e") -> list[tuple[int, str | None, int]]:
    """(end, k, n)"""
    every = [] if rows is None else rows.to_pylist()
    return sorted([(row["window_end"], row["k"], row["n"]) for row in every if row["query"] == query], key=repr)


def test_the_last_word_is_without_as_of_and_others_are_replaced_by_later_ones() -> None:
    every = pa.concat_tables([SECOND[1], FIRST[1]])  # in whatever order files are read
    own = every.filter(pa.compute.equal(every["query"], "e"))
    assert told(replaced(own, ["k"], is_ordered=False)) == [(10, "x", 4), (20, "x", 3), (20, None, 5)]
    assert replaced(own, ["k"], is_ordered=False, keeps_withdrawn=True).num_rows == 4
    left = replaced(pa.concat_tables([own, THIRD[1]]), ["k"], is_ordered=False)
    assert told(present(left, ["k"])) == [(10, "x", 4), (20, None, 6)]
    assert replaced(own.slice(0, 0), ["k"]).num_rows == 0


def test_in_the_order_of_rounds_the_last_row_counts_whatever_it_is_as_of() -> None:
    """A query that replaces another one may report less often."""
    rows = early_piece(("e", 20, "x", 1, "early", 15), ("e", 20, "x", 2, "early", 10))[1]
    assert told(replaced(rows, ["k"])) == [(20, "x", 2)]


def test_the_live_sink_shows_what_stands_and_the_last_final_row_of_each_group(tmp_path: Path) -> None:
    sink = LiveSink(LocalStorage(tmp_path))
    sink.write(0, Given([FIRST], EARLY_TABLES))
    assert told(sink.rows("t")) == [(10, "x", 1), (10, None, 2), (20, "x", 3)]
    for _ in range(2):
        sink.write(1, Given([SECOND], EARLY_TABLES))
        assert told(sink.rows("t")) == [(10, "x", 4), (20, "x", 3), (20, None, 5)]
    for _ in range(2):
        sink.write(2, Given([THIRD], EARLY_TABLES))
        assert told(LiveSink(LocalStorage(tmp_path)).rows("t")) == [(10, "x", 4), (20, None, 6)]
    assert told(sink.rows("t"), "f") == [(20, "x", 9)]


def test_the_live_sink_forgets_groups_that_have_vanished(tmp_path: Path) -> None:
    def changed(*rows: tuple[str, int, str | None, int, str]) -> Given:
        name, table = piece(*(row[:4] for row in rows))
        return Given([(name, table.append_column("change", pa.array([row[4] for row in rows])))], CHANGED_TABLES)

    sink = LiveSink(LocalStorage(tmp_path))
    sink.write(0, changed(("c", 10, "x", 1, "insert"), ("c", 10, "y", 2, "insert")))
    sink.write(1, changed(("c", 20, "x", 0, "delete"), ("c", 20, "y", 3, "update")))
    assert told(sink.rows("t"), "c") == [(20, "y", 3)]


def test_explain_says_what_a_sink_is_given_of_early_rows() -> None:
    asked = EARLY_TABLES["t"].asked
    assert "`report`, `as_of`" in sink_text(asked["e"])
    assert "provisional" not in sink_text(asked["f"])
