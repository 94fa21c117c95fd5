"""Raises if the types of the data do not fit a row query: its conditions, columns, or sides of set operations."""

from __future__ import annotations

from collections.abc import Mapping

from windloom.aggregates.arrow import arrow_type
from windloom.engine.join_types import cast_hint
from windloom.errors import WindloomError
from windloom.model.expression import Expression, ExpressionKey
from windloom.model.rows import Body, Rows, Selection
from windloom.model.types import DataType, TypeKind
from windloom.spark.frames import CONDITIONS

Types = Mapping[ExpressionKey, DataType]


def check_rows(rows: Rows, types: Types) -> None:
    """Check all selections, given the types of their expressions."""
    for selection in rows.selections:
        for strand in selection.strands:
            if strand.where is not None:
                _check_condition(strand.where, types[ExpressionKey(strand.stream, strand.where.sql)])
        conditions = [*selection.conditions, *(condition for each in selection.attached for condition in each.on)]
        for condition in [*conditions, *(each for looked in selection.looked for each in looked.on)]:
            _check_condition(condition.expression, types[ExpressionKey(selection.relation, condition.expression.sql)])
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


def _check_condition(condition: Expression, kind: DataType) -> None:
    if kind.kind not in CONDITIONS:
        raise WindloomError(
            f"the condition '{condition}' is not a condition", f"it is of type {kind}", "compare it with something"
        )


def _check_sides(rows: Rows, body: Body, types: Types) -> tuple[DataType, ...]:
    """Return the column types of a body; both sides of a set operation must have the same."""
    if isinstance(body, Selection):
        kinds = tuple(types[rows.key_of(body, column.expression)] for column in body.columns)
        if body.is_distinct:
            for column, kind in zip(body.columns, kinds, strict=True):
                _check_value(column.name, kind, "DISTINCT")
        return kinds
    left, right = _check_sides(rows, body.left, types), _check_sides(rows, body.right, types)
    others = _first(body.right).columns
    for column, other, left_type, right_type in zip(rows.columns, others, left, right, strict=True):
        if left_type != right_type and TypeKind.NULL not in (left_type.kind, right_type.kind):
            raise WindloomError(
                f"the column '{column.name}' has different types on both sides of {body.kind}",
                f"they are {left_type} and {right_type}",
                cast_hint(column.name, left_type, other.name, right_type),
            )
    for column, kind in zip(rows.columns, left, strict=True):
        _check_value(column.name, kind, str(body.kind))
    return left


def _first(body: Body) -> Selection:
    return body if isinstance(body, Selection) else _first(body.left)


def _check_value(name: str, kind: DataType, what: str) -> None:
    if "map<" in kind.name:
        raise WindloomError(
            f"{what} cannot compare the column '{name}'", f"it is of type {kind}", f"select to_json({name})"
        )
