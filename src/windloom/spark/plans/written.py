"""What a DataFrame asks, read from its plan: the data that it reads, and the clauses of a query over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from windloom.errors import WindloomError
from windloom.language.sql.statement import TableRead
from windloom.language.sql.tokens import spelled
from windloom.model.time import format_duration


class PlanLeaf(Protocol):
    """The data that a DataFrame reads: a source, and whatever Spark computes from it before any window."""

    @property
    def label(self) -> str:
        """A name for it: that of a view, a table or a folder."""
        ...

    @property
    def frame(self) -> DataFrame:
        """Return the rows, with the columns that the clauses name."""
        ...

    def reads_same(self, frame: DataFrame) -> bool:
        """Return whether a DataFrame has the same rows and columns, by its plan."""
        ...


@dataclass(frozen=True, slots=True)
class WrittenWindow:
    """A call of window() or session_window(): the time, as SQL over the leaf, and durations as SQL literals.

    `column` is the column of the leaf that is the time; None if the time is computed.
    """

    function: str
    time: str
    column: str | None
    lengths: tuple[str, ...]

    def call(self, column: str) -> str:
        """Return the call over a time column of this name."""
        return f"{self.function}({', '.join([spelled(column), *self.lengths])})"


@dataclass(frozen=True, slots=True)
class WrittenQuery:
    """The query that a DataFrame stands for.

    `columns` are expressions with their names in the answer, which are unique even where those of the DataFrame are
    not; `delay_ticks` is what withWatermark says, if it was called.
    """

    leaf: PlanLeaf
    window: WrittenWindow
    columns: tuple[tuple[str, str], ...]
    schema: StructType
    where: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    having: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    delay_ticks: int | None = None
    is_streaming: bool = False

    def text(self, stream: str, time: str) -> str:
        """Return the query as text over a stream of this name, with a time column of this name."""
        items = ", ".join(_item(sql, name) for sql, name in self.columns)
        lines = [f"SELECT {items}", f"FROM {spelled(stream)}"]
        if self.where:
            lines.append(f"WHERE {all_of(self.where)}")
        lines.append(f"GROUP BY {', '.join([self.window.call(time), *self.groups])}")
        if self.having:
            lines.append(f"HAVING {all_of(self.having)}")
        if self.order:
            lines.append(f"ORDER BY {', '.join(self.order)}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class WrittenText:
    """The query of a text that a DataFrame was made from, where nobody else has read it."""

    leaf: PlanLeaf
    window: WrittenWindow
    read: TableRead
    schema: StructType
    is_streaming: bool
    delay_ticks: int | None = None

    def text(self, stream: str, time: str) -> str:
        """Return the text over a stream of this name; its time is a column, which keeps its name."""
        table = self.read.table
        alias = "" if stream == table or self.read.has_alias else f" AS {spelled(table)}"
        return f"{self.read.before}{spelled(stream)}{alias}{self.read.after}"


def _item(sql: str, name: str) -> str:
    quoted = spelled(name)
    is_plain = sql == quoted or (sql == name and name.isidentifier())
    return sql if is_plain else f"{sql} AS {quoted}"


def all_of(conditions: Sequence[str]) -> str:
    """Return one condition that holds where all of these do."""
    return conditions[0] if len(conditions) == 1 else " AND ".join(f"({condition})" for condition in conditions)


def unique_names(names: Sequence[str], taken: Sequence[str] = ()) -> tuple[str, ...]:
    """Return names of which no two are equal without case, and none is among those taken; repeated ones get numbers.

    >>> unique_names(["id", "ID", "n"], ["n"])
    ('id', 'ID_2', 'n_2')
    """
    seen, unique = {name.lower() for name in taken}, []
    for name in names:
        number, candidate = 1, name
        while candidate.lower() in seen:
            number += 1
            candidate = f"{name}_{number}"
        seen.add(candidate.lower())
        unique.append(candidate)
    return tuple(unique)


def duration_literal(ticks: int) -> str:
    """Return a duration as window() takes it: `'1 hour'`."""
    return f"'{format_duration(ticks)}'"


#: What is possible, for hints.
WORKS_TODAY = (
    "a query is where/select, then groupBy(window(…), …).agg(…), then where/select/orderBy; "
    "do the rest with the rows of the answer"
)


#: What to do instead of nodes that cannot stand above a window.
INSTEAD = {
    "Join": "register each side by itself, and join the answers: results['a'].join(results['b'], ['window', …])",
    **dict.fromkeys(
        ("Union", "SetOperation"),
        "register each part by itself, and unite the answers: results['a'].union(results['b'])",
    ),
    **dict.fromkeys(
        ("GlobalLimit", "LocalLimit", "Limit"), "leave it out, and limit the answer: results[name].limit(…)"
    ),
    **dict.fromkeys(("Deduplicate", "Distinct"), "leave it out, and call it on the answer: results[name].distinct()"),
}


@dataclass(frozen=True)
class RefusedPlanError(Exception):
    """Raised while a plan is read; `place` is the line of the user's program, if PySpark knows it."""

    message: str
    detail: str
    hint: str = WORKS_TODAY
    place: str | None = None

    def named(self, name: str) -> WindloomError:
        """Return the error about the query of this name."""
        where = f" (at {self.place})" if self.place else ""
        return WindloomError(f"query '{name}': {self.message}{where}", self.detail, self.hint)
