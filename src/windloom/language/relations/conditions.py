"""The conditions with which tuples are joined with a relation as they come in."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from windloom.expressions.typing import operand_type
from windloom.language.scopes import Names, RowScope
from windloom.language.statement import Statement
from windloom.language.terms import all_of, inside
from windloom.model import DataType, Expression, TypeKind

_PLACE = "the condition of a join"
_WIDTHS = (TypeKind.INTEGER, TypeKind.FLOAT)


def condition_of(nodes: Sequence[exp.Expr], names: Names, columns: Collection[str], statement: Statement) -> Expression:
    """Return the conjunction of conditions, over the columns of the enriched stream; `columns` are those of the
    relation.

    Conditions are in a fixed order, and equalities have the relation on their right, so that queries which ask for the
    same have the same text.
    """
    terms = [statement.bind(_turned(node, names, columns), RowScope(names, _PLACE)) for node in nodes]
    conjunction = all_of(sorted(terms, key=lambda term: term.sql))
    assert conjunction is not None, "a relation without a key has been refused"
    return conjunction.row_expression()


def _turned(node: exp.Expr, names: Names, columns: Collection[str]) -> exp.Expr:
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return node
    left, right = (_columns(side, names) for side in (node.this, node.expression))
    is_backwards = right and left & set(columns) and not right & set(columns)
    return type(node)(this=node.expression, expression=node.this) if is_backwards else node


def _columns(node: exp.Expr, names: Names) -> set[str]:
    columns = (names.find_node(column) for column in node.find_all(exp.Column))
    return {column[0] for column in columns if column is not None}


def check_keys(node: exp.Expr, names: Names, statement: Statement) -> None:
    """Refuse an equality whose types are known and differ in more than their width, as for joins of streams."""
    if not isinstance(node, exp.EQ | exp.NullSafeEQ):
        return
    sides = (statement.bind(inside(side), RowScope(names, _PLACE)) for side in (node.this, node.expression))
    kinds = [operand_type(side.tree, names.stream.columns) for side in sides]
    if kinds[0] is None or kinds[1] is None or _is_alike(kinds[0], kinds[1]):
        return
    raise statement.error(
        f"the keys of a join must have one type, and these are {kinds[0]} and {kinds[1]}",
        node,
        f"cast one of them, for example CAST(… AS {kinds[0].name.upper()})",
    )


def _is_alike(left: DataType, right: DataType) -> bool:
    return left == right or (left.kind is right.kind and left.kind in _WIDTHS)
