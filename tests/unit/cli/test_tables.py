"""Tables on the terminal."""

from __future__ import annotations

import pyarrow as pa

from windloom.cli.options import arrow_lines, table_lines


def test_columns_are_aligned_and_numbers_stand_on_the_right() -> None:
    assert table_lines(("name", "rows"), [("a", "1,234"), ("long name", "5")], right=("rows",)) == [
        "name        rows",
        "a          1,234",
        "long name      5",
    ]


def test_cells_are_text_and_never_markup() -> None:
    assert table_lines(("[bold]a[/bold]",), [("[red]1[/red]",)]) == ["[bold]a[/bold]", "[red]1[/red]"]


def test_a_wide_letter_takes_two_places() -> None:
    assert table_lines(("a", "b"), [("日本", "1"), ("x", "2")]) == ["a     b", "日本  1", "x     2"]


def test_a_long_cell_is_neither_wrapped_nor_cut() -> None:
    assert table_lines(("a",), [("word " * 100,)])[1] == ("word " * 100).rstrip()


def test_answers_are_shown_under_their_names() -> None:
    rows = pa.table({"symbol": ["A", None], "n": [1, 20]})
    assert arrow_lines(rows) == ["  symbol  n", "  A       1", "  None    20"]
