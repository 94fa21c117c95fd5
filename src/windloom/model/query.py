"""A query as the loom sees it: a window, a predicate, a grouping, aggregates, and what to make of them."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.model.aggregate import Aggregate, Component
from windloom.model.expression import Expression
from windloom.model.predicate import Predicate
from windloom.model.windows import Window


@dataclass(frozen=True, slots=True)
class Grouping:
    """One grouping column: the name it has in the output, and what it is computed from."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer after the grouping columns.

    `aggregate` is the index of the query's aggregate when the column is that aggregate and nothing more;
    otherwise `expression` is Spark SQL over the columns `__a0, __a1, …` (aggregates) and `__g0, …` (groupings).
    """

    name: str
    aggregate: int | None = None
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One continuous query over one stream."""

    name: str
    stream: str
    window: Window
    where: Expression | None
    group_by: tuple[Grouping, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    having: Expression | None
    text: str
    predicate: Predicate | None = None  # what is known of `where`

    @property
    def condition(self) -> Predicate | None:
        """The predicate tuples must satisfy; None if all of them do."""
        found = self.predicate
        if found is None and self.where is not None:
            found = Predicate.opaque(self.where)
        return None if found is None or found.is_always else found

    @property
    def is_plain(self) -> bool:
        """Every output column is an aggregate as it stands, and every row is reported."""
        return self.having is None and all(output.aggregate is not None for output in self.outputs)

    @property
    def components(self) -> tuple[Component, ...]:
        return tuple(dict.fromkeys(part for aggregate in self.aggregates for part in aggregate.components))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression evaluated on the tuples of the stream."""
        found = [grouping.expression for grouping in self.group_by]
        found += [one for aggregate in self.aggregates for one in aggregate.expressions]
        if self.where is not None:
            found.append(self.where)
        return tuple(dict.fromkeys(found))
