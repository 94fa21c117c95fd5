"""The identity that makes two partial sets the same: a value that is derived from a query or from a set, in any plan.

Queries with the same identity are summarised together. Whatever is kept about a set from plan to plan (a run's
observations of it, the cells that a stream keeps, the trees that live queries form) is found by this value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from windloom.model.expression import Expression
from windloom.model.predicate import Predicate
from windloom.model.query import Query
from windloom.model.windows import Window


class Difference(StrEnum):
    """The ways in which two identities differ."""

    STREAM = "stream"
    PREDICATE = "predicate"
    GROUPING = "grouping"
    WINDOWS = "kind of window"


@dataclass(frozen=True, slots=True, order=True)
class SetIdentity:
    """Everything is canonical SQL, which is equal if the meaning is equal, and gives the sets of a plan an order.

    `predicate` is empty if every tuple is wanted. Predicates on which Spark may fail differ by the order of
    their parts, because one part may guard another: `a <> 0 AND b / a > 1`.
    `grouping` has no order and no names: `GROUP BY a, b` and `GROUP BY b AS x, a` are one grouping.
    `windows` is what the kind of window adds: nothing if slices are stretches of time; if they are stretches of
    positions, its name and the keys by which tuples are counted; for sessions, their gap.
    """

    stream: str
    predicate: str = ""
    grouping: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        stream: str,
        predicate: Predicate | None,
        group_by: Iterable[Expression],
        window: Window,
    ) -> SetIdentity:
        return cls(
            stream,
            "" if predicate is None else predicate.sql,
            tuple(expression.sql for expression in group_by),
            window.set_identity,
        )

    @classmethod
    def of_query(cls, query: Query) -> SetIdentity:
        """The identity of the set that answers a query."""
        return cls.of(query.stream, query.condition, set_grouping(query), query.window)

    def differences(self, other: SetIdentity) -> tuple[Difference, ...]:
        """The ways in which two identities differ.

        >>> [str(one) for one in SetIdentity("s", "x > 1").differences(SetIdentity("s", "", ("k",)))]
        ['predicate', 'grouping']
        """
        pairs = (
            (Difference.STREAM, self.stream, other.stream),
            (Difference.PREDICATE, self.predicate, other.predicate),
            (Difference.GROUPING, self.grouping, other.grouping),
            (Difference.WINDOWS, self.windows, other.windows),
        )
        return tuple(difference for difference, mine, its in pairs if mine != its)


def set_grouping(query: Query) -> tuple[Expression, ...]:
    """The grouping columns of the set that answers a query, each once and in the set's order."""
    return tuple(sorted({grouping.expression for grouping in query.group_by}))
