"""Checks of a query against the types of its data: joins (keys, conditions, factors of products) and row queries."""

from __future__ import annotations

from collections.abc import Mapping

from windloom.errors import WindloomError
from windloom.expressions.functions import truth
from windloom.expressions.types import STRING, NotKnownError, common_type
from windloom.expressions.typing import resolve
from windloom.model.expression import Expression, ExpressionKey
from windloom.model.join import Join, Link, Side, SumOfProducts
from windloom.model.query import Query
from windloom.model.rows import Body, RowQuery, Selection
from windloom.model.types import DataType, TypeKind, arrow_type
from windloom.spark.frames import CONDITIONS

Types = Mapping[ExpressionKey, DataType]


def check_join(join: Join, query: Query, types: Types) -> None:
    """Check sides, links and folds, given the types of all expressions."""
    for side in join.sides:
        for expression in side.group_by:
            kind = _type(side, expression, types)
            if not kind.is_groupable:
                raise WindloomError(
                    f"cannot join on '{side.alias}.{expression}'",
                    f"it is of type {kind}",
                    "join on plain values: its fields or elements, or lower(…) instead of a collation",
                )
        if side.where is not None:
            check_condition(f"condition '{side.where}' on '{side.alias}'", _type(side, side.where, types))
    for link in join.links:
        parent, child = join.sides[link.parent], join.sides[link.child]
        for pair in link.keys:
            expression, other = parent.group_by[pair.parent], child.group_by[pair.child]
            kinds = _type(parent, expression, types), _type(child, other, types)
            if kinds[0] != kinds[1]:
                raise WindloomError(
                    f"the keys '{parent.alias}.{expression}' and '{child.alias}.{other}' have different types",
                    f"they are {kinds[0]} and {kinds[1]}",
                    cast_hint(f"{parent.alias}.{expression}", kinds[0], f"{child.alias}.{other}", kinds[1]),
                )
        _check_residual(join, link, types)
    for component, folded in zip(query.components, join.folded, strict=True):
        if isinstance(folded, SumOfProducts) and folded.counted is not None and component.argument is not None:
            _check_products(join, folded, component.argument, types[query.key_of(component.argument)], types)


def check_condition(what: str, kind: DataType) -> None:
    """Raise if what stands where a condition is needed has another type."""
    if kind.kind not in CONDITIONS:
        raise WindloomError(f"the {what} is not a condition", f"it is of type {kind}", "compare it with something")


def cast_hint(left: str, left_type: DataType, right: str, right_type: DataType) -> str:
    """Advise the casts that give both the type to which Spark would widen them; strings hold all other values."""
    try:
        found = common_type([left_type, right_type])
        common = found.kind if found.is_certain else STRING
    except NotKnownError:
        common = STRING
    casts = [
        f"CAST({written} AS {common.name.upper()})"
        for written, kind in ((left, left_type), (right, right_type))
        if kind != common
    ]
    return f"cast {'both' if len(casts) > 1 else 'one of them'}: {' and '.join(casts)}"


def _type(side: Side, expression: Expression, types: Types) -> DataType:
    return types[ExpressionKey(side.source.stream, expression.sql)]


def _check_residual(join: Join, link: Link, types: Types) -> None:
    """Raise if the condition on pairs cannot be evaluated without Spark."""
    if link.residual is None:
        return
    columns = {
        f"__{letter}{index}": _type(side, expression, types)
        for letter, side in (("p", join.sides[link.parent]), ("c", join.sides[link.child]))
        for index, expression in enumerate(side.group_by)
    }
    try:
        truth("the condition of a join", resolve(link.residual.tree, columns))
    except NotKnownError as unknown:
        shown = link.residual.sql
        for letter, side in (("p", join.sides[link.parent]), ("c", join.sides[link.child])):
            for index, expression in reversed(list(enumerate(side.group_by))):
                shown = shown.replace(f"__{letter}{index}", f"{side.alias}.{expression}")
        raise WindloomError(
            f"the condition '{shown}' of a join cannot be evaluated on pairs",
            f"it has {unknown}, which only Spark knows",
            "compare expressions of single streams with each other, by =, <, <=, >, >=, <>, AND, OR, NOT or IN",
        ) from None


def _check_products(join: Join, folded: SumOfProducts, whole: Expression, kind: DataType, types: Types) -> None:
    """Raise if products do not have the type of the whole, because types in the session differ from our own rules."""
    for product in folded.products:
        kinds = []
        for side, index in zip(join.sides, product.factors, strict=True):
            component = side.components[index]
            if component.kind == "sum" and component.argument is not None:
                kinds.append(_type(side, component.argument, types))
        fits = {kind.kind for kind in kinds} == {kind.kind}
        if not fits or (kind.kind is TypeKind.DECIMAL and sum(kind.scale for kind in kinds) != kind.scale):
            raise WindloomError(
                f"a sum of '{whole}' cannot be taken over a join",
                f"it is of type {kind}, and its parts are of type {', '.join(map(str, kinds))}",
                "cast its parts, for example with CAST(… AS DOUBLE)",
            )


def check_rows(rows: RowQuery, types: Types) -> None:
    """Check conditions, columns and sides of set operations of a row query, given the types of their expressions."""
    for selection in rows.selections:
        for strand in selection.strands:
            if strand.where is not None:
                check_condition(f"condition '{strand.where}'", types[ExpressionKey(strand.stream, strand.where.sql)])
        conditions = [*selection.conditions, *(condition for each in selection.attached for condition in each.on)]
        for condition in [*conditions, *(each for looked in selection.looked for each in looked.on)]:
            kind = types[ExpressionKey(selection.relation, condition.expression.sql)]
            check_condition(f"condition '{condition.expression}'", kind)
        for column in selection.columns:
            kind = types[rows.key_of(selection, column.expression)]
            try:
                arrow_type(kind)
            except KeyError:
                raise WindloomError(
                    f"the column '{column.name}' cannot be reported",
                    f"it is of type {kind}",
                    f"select its parts, or to_json({column.name})",
                ) from None
    _check_sides(rows, rows.body, types)


def _check_sides(rows: RowQuery, body: Body, types: Types) -> tuple[DataType, ...]:
    """Return the column types of a body; both sides of a set operation must have the same."""
    if isinstance(body, Selection):
        kinds = tuple(types[rows.key_of(body, column.expression)] for column in body.columns)
        if body.is_distinct:
            for column, kind in zip(body.columns, kinds, strict=True):
                _check_value(column.name, kind, "DISTINCT")
        return kinds
    left, right = _check_sides(rows, body.left, types), _check_sides(rows, body.right, types)
    first = body.right
    while not isinstance(first, Selection):
        first = first.left
    for column, other, left_type, right_type in zip(rows.columns, first.columns, left, right, strict=True):
        if left_type != right_type and TypeKind.NULL not in (left_type.kind, right_type.kind):
            raise WindloomError(
                f"the column '{column.name}' has different types on both sides of {body.kind}",
                f"they are {left_type} and {right_type}",
                cast_hint(column.name, left_type, other.name, right_type),
            )
    for column, kind in zip(rows.columns, left, strict=True):
        _check_value(column.name, kind, str(body.kind))
    return left


def _check_value(name: str, kind: DataType, what: str) -> None:
    if "map<" in kind.name:
        raise WindloomError(
            f"{what} cannot compare the column '{name}'", f"it is of type {kind}", f"select to_json({name})"
        )
