"""A query: a source, a predicate, a grouping, aggregates, and the columns made from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from windloom.model.aggregate import Aggregate, Component
from windloom.model.clauses import Emission, Presentation, Urgency
from windloom.model.expression import Expression, ExpressionKey
from windloom.model.join import Join, WindowedStream
from windloom.model.predicate import Predicate, condition_of
from windloom.model.rows import RowQuery
from windloom.model.stream import EnrichedStream
from windloom.model.windows import Window

#: Every class of source has `window`, `streams`, `relations`, `relation` and `windows_over`.
Source = WindowedStream | Join | RowQuery


@dataclass(frozen=True, slots=True)
class Grouping:
    """One grouping column: its name in the output, and its expression."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer after the grouping columns.

    `aggregate` is the index of the query's aggregate if the column is that aggregate and nothing more;
    otherwise `expression` is Spark SQL over the columns `__a0, __a1, …` (aggregates), `__g0, …` (groupings), and
    `window_start` and `window_end`.
    """

    name: str
    aggregate: int | None = None
    expression: Expression | None = None


@dataclass(frozen=True)
class Query:
    """One continuous query over one source.

    If the source is a join, expressions are qualified (`o.region`), and `where` is None: its conjuncts are kept by the
    sides and links of the join. A *side* is a hidden query that a join asks of one stream: it has no columns, keeps
    components, and closes its windows with the streams of the join. A query whose source is rows reports those rows,
    or aggregates of them.
    """

    name: str
    source: Source
    where: Expression | None
    group_by: tuple[Grouping, ...]
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    having: Expression | None
    text: str
    predicate: Predicate | None = None  # `where` as a predicate
    keeps: tuple[Component, ...] = ()  # for a side: the components that the fold needs
    closes_with: tuple[str, ...] = ()  # for a side: all streams of its join
    emission: Emission = field(default_factory=Emission)
    urgency: Urgency = field(default_factory=Urgency)
    presentation: Presentation = field(default_factory=Presentation)

    @property
    def window(self) -> Window:
        """The windows that its answers report on."""
        return self.source.window

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads."""
        return self.source.streams

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations it reads, retroactive or not."""
        return self.source.relations

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams that decide when its windows close."""
        return self.closes_with or self.source.streams

    @property
    def is_side(self) -> bool:
        """Whether it answers a join instead of a user."""
        return bool(self.closes_with)

    @property
    def deadline_ticks(self) -> int:
        """The ticks after its end within which a window should be answered: a slide, unless the user asks otherwise."""
        within = self.urgency.within_ticks
        return self.window.slide_ticks if within is None else within

    @property
    def join(self) -> Join | None:
        """The join of partials that it reads; None if it reads something else."""
        return self.source if isinstance(self.source, Join) else None

    @property
    def rows(self) -> RowQuery | None:
        """The rows that it reads; None if it is answered from partials."""
        return self.source if isinstance(self.source, RowQuery) else None

    @property
    def stream(self) -> str:
        """The stream of a query that reads only one, which every query of a partial set does.

        It may be enriched with relations, or be a relation itself.
        """
        assert isinstance(self.source, WindowedStream), "a join has several streams, and so may rows"
        return self.source.stream

    @property
    def enriched(self) -> tuple[EnrichedStream, ...]:
        """The streams it reads that are enriched with relations."""
        sources = [self.source] if isinstance(self.source, WindowedStream) else []
        sources += [] if self.join is None else [side.source for side in self.join.sides]
        return tuple(dict.fromkeys(source.enriched for source in sources if source.enriched is not None))

    def key_of(self, expression: Expression) -> ExpressionKey:
        """Return the key of the type of one of its expressions."""
        return ExpressionKey(self.source.relation, expression.sql)

    @property
    def condition(self) -> Predicate | None:
        """The predicate that tuples must satisfy; None if all do."""
        return condition_of(self.predicate, self.where)

    @property
    def is_plain(self) -> bool:
        """Whether every output column is a bare aggregate, and every row is reported."""
        return self.having is None and all(output.aggregate is not None for output in self.outputs)

    @property
    def is_approximate(self) -> bool:
        """Whether some of its aggregates are approximate."""
        return any(aggregate.is_approximate for aggregate in self.aggregates)

    @property
    def aggregate_columns(self) -> tuple[int, ...]:
        """Which aggregate fills each column of the table of answers: all in order, unless the query is plain."""
        if self.is_plain:
            return tuple(output.aggregate for output in self.outputs if output.aggregate is not None)
        return tuple(range(len(self.aggregates)))

    @cached_property
    def components(self) -> tuple[Component, ...]:
        asked = (component for aggregate in self.aggregates for component in aggregate.components)
        return tuple(dict.fromkeys((*self.keeps, *asked)))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression that is evaluated on the tuples it reads."""
        expressions = [grouping.expression for grouping in self.group_by]
        expressions += [expression for aggregate in self.aggregates for expression in aggregate.expressions]
        expressions += [expression for kept in self.keeps for expression in kept.expressions]
        if self.where is not None:
            expressions.append(self.where)
        return tuple(dict.fromkeys(expressions))

    @property
    def evaluated(self) -> Iterator[tuple[str, Expression]]:
        """Every expression that needs a type, with the relation on whose tuples it is evaluated."""
        for expression in self.expressions:
            yield self.source.relation, expression
        for side in () if self.join is None else self.join.sides:
            for expression in side.expressions:
                yield side.source.stream, expression
        if self.rows is not None:
            yield from self.rows.evaluated
