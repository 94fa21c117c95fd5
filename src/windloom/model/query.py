"""A query: a source, a predicate, a grouping, aggregates, and the columns made from them."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.model.aggregate import Aggregate, Component
from windloom.model.expression import Expression, ExpressionKey
from windloom.model.predicate import Predicate
from windloom.model.source import Source
from windloom.model.windows import Window


@dataclass(frozen=True, slots=True)
class Grouping:
    """One grouping column: its name in the output, and its expression."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer after the grouping columns.

    `aggregate` is the index of the query's aggregate if the column is that aggregate and nothing more;
    otherwise `expression` is Spark SQL over the columns `__a0, __a1, …` (aggregates) and `__g0, …` (groupings).
    """

    name: str
    aggregate: int | None = None
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One continuous query over one source."""

    name: str
    source: Source
    where: Expression | None
    group_by: tuple[Grouping, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    having: Expression | None
    text: str
    predicate: Predicate | None = None  # what is known of `where`

    @property
    def window(self) -> Window:
        """The windows that its answers report on."""
        return self.source.window

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads."""
        return self.source.streams

    def key_of(self, expression: Expression) -> ExpressionKey:
        """The key of the type of one of its expressions."""
        return ExpressionKey(self.source.stream, expression.sql)

    @property
    def condition(self) -> Predicate | None:
        """The predicate that tuples must satisfy; None if all do."""
        found = self.predicate
        if found is None and self.where is not None:
            found = Predicate.opaque(self.where)
        return None if found is None or found.is_always else found

    @property
    def is_plain(self) -> bool:
        """Whether every output column is a bare aggregate, and every row is reported."""
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
