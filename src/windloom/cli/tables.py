"""Tables on the terminal: aligned columns of plain text, as wide as their contents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    import pyarrow as pa

#: Wider than any table: the terminal wraps a long line, and `grep` finds it whole.
_WIDTH = 10_000


def table_lines(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = (), indent: str = ""
) -> list[str]:
    """Return the lines of a table; the columns in `right` are aligned right. Cells are text, never markup.

    >>> table_lines(["tree", "cost"], [["0", "12"], ["1", "3"]], right=["cost"])
    ['tree  cost', '0       12', '1        3']
    """
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in headers:
        table.add_column(Text(name), justify="right" if name in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console(width=_WIDTH, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(table)
    return [indent + line.rstrip() for line in captured.get().splitlines()]


def arrow_lines(rows: pa.Table) -> list[str]:
    """Return a few rows of answers, under the names of their columns."""
    cells = ([str(value) for value in row.values()] for row in rows.to_pylist())
    return table_lines(rows.column_names, cells, indent="  ")
