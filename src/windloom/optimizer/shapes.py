"""Shapes: the names and types of the columns that a query answers with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from windloom.model.aggregate import Component
from windloom.model.expression import Expression, ExpressionKey
from windloom.model.query import Query
from windloom.model.types import DataType
from windloom.plan.physical import PlannedComponent, Shape

#: The type of every expression that queries evaluate on tuples.
Types = Mapping[ExpressionKey, DataType]


def planned_components(components: Iterable[Component], query: Query, types: Types) -> tuple[PlannedComponent, ...]:
    """Components with the types of their arguments, which `query` reads."""
    return tuple(
        PlannedComponent(component, None if component.argument is None else types[query.key_of(component.argument)])
        for component in components
    )


def shape_of(query: Query, types: Types) -> Shape:
    """The answer columns of a query; those of a plain query are reported as the step writes them."""
    group_types = [types[query.key_of(grouping.expression)] for grouping in query.group_by]
    results = [
        aggregate.result_type(None if aggregate.argument is None else types[query.key_of(aggregate.argument)])
        for aggregate in query.aggregates
    ]
    names = [grouping.name for grouping in query.group_by]
    if query.is_plain:
        return Shape(
            tuple(zip(names, group_types, strict=True)),
            tuple((output.name, results[output.aggregate]) for output in query.outputs if output.aggregate is not None),
            emits=query.emission.kind,
        )
    select = [(name, Expression.of_placeholder(f"__g{i}")) for i, name in enumerate(names)]
    select += [
        (output.name, output.expression or Expression.of_placeholder(f"__a{output.aggregate}"))
        for output in query.outputs
    ]
    return Shape(
        tuple((f"__g{i}", type_) for i, type_ in enumerate(group_types)),
        tuple((f"__a{i}", result) for i, result in enumerate(results)),
        tuple(select),
        query.having,
        emits=query.emission.kind,
    )
