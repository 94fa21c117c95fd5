"""A source of rows: read by a query that reports rows of windows instead of aggregates of partials.

At the end t of a window, the rows are those of SQL over `[t − range, t)` of every stream. Strands are the streams, each
through its window; selections join them and choose columns; set operations combine selections. All windows of a query
have one slide and end together, so a row that is made of tuples stands at ends that follow each other: from the first
end after its latest tuple to the last end at which its earliest tuple is still in its window. That is its lifetime.

An interval join (`JOIN … WITHIN 30 minutes`) is such a query whose windows end at every tick: two tuples share such a
window if they lie less than its range apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from windloom.model.expression import Expression, ExpressionKey
from windloom.model.join import WindowedStream
from windloom.model.predicate import Predicate, condition_of
from windloom.model.stream import JoinKind
from windloom.model.windows import TimeWindow, Window


class Reports(StrEnum):
    """Which rows are reported at the end of a window."""

    STANDING = "rstream"  # all rows of the window
    ENTERING = "istream"  # rows that were not in the window before
    LEAVING = "dstream"  # rows of the window before that are not in this one


@dataclass(frozen=True, slots=True)
class RowInput:
    """One stream of a selection, through its window, without the tuples that its own condition leaves out.

    `columns` are those of the stream that anything in the selection reads, sorted. The condition is over the columns
    of the stream, without qualifiers.
    """

    source: WindowedStream  # its alias is set if the selection has several strands
    columns: tuple[str, ...]
    where: Expression | None = None
    predicate: Predicate | None = None  # `where` as a predicate

    @property
    def stream(self) -> str:
        return self.source.stream

    @property
    def window(self) -> Window:
        return self.source.window

    @property
    def alias(self) -> str:
        return self.source.alias or self.source.stream

    @property
    def condition(self) -> Predicate | None:
        """The predicate that its tuples must satisfy; None if all do."""
        return condition_of(self.predicate, self.where)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on several strands at once, over qualified columns."""

    expression: Expression
    strands: tuple[int, ...]
    is_key: bool = False  # it equates an expression of one strand with one of another


@dataclass(frozen=True, slots=True)
class AttachedRelation:
    """The join of a strand to those before it, by INNER or LEFT.

    `on` are the conditions of a LEFT join; the selection keeps those of inner joins. If `within_ticks` is set, its
    tuples lie less than this far from those of all strands before it.
    """

    kind: JoinKind = JoinKind.INNER
    on: tuple[Condition, ...] = ()
    within_ticks: int | None = None


@dataclass(frozen=True, slots=True)
class ExistsInput:
    """Strands that are searched for a match: a row counts if there is one (SEMI), or if there is none (ANTI)."""

    kind: JoinKind
    strands: tuple[int, ...]
    on: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of the rows; its expression is qualified if there are several strands."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Selection:
    """One SELECT: strands, how they are joined, conditions on several of them, and columns.

    First come the strands that rows are made of, then those that are searched for matches. If there is a LEFT join
    among the first, they are joined in their order; otherwise any order gives the same rows. A selection under
    aggregates has no columns.
    """

    strands: tuple[RowInput, ...]
    attached: tuple[AttachedRelation, ...] = ()  # one for each strand that rows are made of, except the first
    looked: tuple[ExistsInput, ...] = ()
    conditions: tuple[Condition, ...] = ()
    columns: tuple[RowColumn, ...] = ()
    is_distinct: bool = False

    @property
    def joined(self) -> int:
        """The number of strands that rows are made of."""
        return 1 + len(self.attached)

    @property
    def relation(self) -> str:
        """The name of the tuples on which its expressions are evaluated: the stream, or `orders AS o, clicks AS c`."""
        if len(self.strands) == 1:
            return self.strands[0].stream
        return ", ".join(f"{strand.stream} AS {strand.alias}" for strand in self.strands)

    @property
    def is_inner(self) -> bool:
        """Whether its rows are made of one tuple of every strand, and so have lifetimes."""
        is_plain = not self.is_distinct and not self.looked
        return is_plain and all(attached.kind is JoinKind.INNER for attached in self.attached)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression that is evaluated on its relation."""
        columns = [column.expression for column in self.columns]
        conditions = [*self.conditions, *(condition for each in self.attached for condition in each.on)]
        conditions += [condition for each in self.looked for condition in each.on]
        return tuple(dict.fromkeys([*columns, *(condition.expression for condition in conditions)]))


class SetKind(StrEnum):
    """How two bags of rows are combined; without ALL, as sets."""

    UNION_ALL = "UNION ALL"
    UNION = "UNION"
    EXCEPT_ALL = "EXCEPT ALL"
    EXCEPT = "EXCEPT"
    INTERSECT_ALL = "INTERSECT ALL"
    INTERSECT = "INTERSECT"


@dataclass(frozen=True, slots=True)
class SetOperation:
    """Two bodies whose rows are compared and combined by value; columns have the names of the first."""

    kind: SetKind
    left: Body
    right: Body


#: What rows are made of.
Body = Selection | SetOperation


@dataclass(frozen=True, slots=True)
class RowQuery:
    """Rows as the source of a query.

    `within`: it is an interval join, whose pairs are reported once. `tells_end`: a row that enters shows when it will
    leave. Under aggregates, the body is a selection without columns, and the query keeps the grouping columns and the
    aggregates.
    """

    #: Rows are made of tuples of streams.
    relations: ClassVar[tuple[str, ...]] = ()

    body: Body
    reports: Reports = Reports.STANDING
    within: bool = False
    tells_end: bool = False

    @property
    def selections(self) -> tuple[Selection, ...]:
        pending, selections = [self.body], list[Selection]()
        while pending:
            body = pending.pop()
            if isinstance(body, Selection):
                selections.append(body)
            else:
                pending += [body.right, body.left]
        return tuple(selections)

    @property
    def strands(self) -> tuple[RowInput, ...]:
        """The strands of all selections, in their order."""
        return tuple(strand for selection in self.selections for strand in selection.strands)

    @property
    def columns(self) -> tuple[RowColumn, ...]:
        """The columns of the rows, with the names and expressions of the first selection."""
        return self.selections[0].columns

    @property
    def has_lifetimes(self) -> bool:
        """Whether every row is made of tuples: then it enters once, leaves once, and both are known beforehand."""
        pending = [self.body]
        while pending:
            body = pending.pop()
            if isinstance(body, SetOperation) and body.kind is SetKind.UNION_ALL:
                pending += [body.left, body.right]
            elif isinstance(body, SetOperation) or not body.is_inner:
                return False
        return True

    @property
    def window(self) -> Window:
        """The windows that rows are reported for: they end together, and begin with the earliest of all strands."""
        longest = max((strand.window for strand in self.strands), key=lambda window: window.range_ticks)
        return TimeWindow(longest.range_ticks, longest.slide_ticks, longest.offset_ticks)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads, each once, in the order in which it names them."""
        return tuple(dict.fromkeys(strand.stream for strand in self.strands))

    @property
    def relation(self) -> str:
        """The name of the tuples on which expressions of the first selection are evaluated."""
        return self.selections[0].relation

    def windows_over(self, stream: str) -> tuple[Window, ...]:
        """Return the windows through which it reads one stream; none if it does not read it, or asks for no windows."""
        return () if self.within else tuple(strand.window for strand in self.strands if strand.stream == stream)

    @property
    def evaluated(self) -> Iterator[tuple[str, Expression]]:
        """Every expression that needs a type, with the relation on whose tuples it is evaluated."""
        for selection in self.selections:
            for expression in selection.expressions:
                yield selection.relation, expression
            for strand in selection.strands:
                if strand.where is not None:
                    yield strand.stream, strand.where

    def key_of(self, selection: Selection, expression: Expression) -> ExpressionKey:
        """Return the key of the type of an expression of a selection."""
        return ExpressionKey(selection.relation, expression.sql)

    def __str__(self) -> str:
        return _text(self.body)


def _text(body: Body) -> str:
    if isinstance(body, Selection):
        return " ⋈ ".join(str(strand.source) for strand in body.strands)
    return f"({_text(body.left)} {body.kind} {_text(body.right)})"
