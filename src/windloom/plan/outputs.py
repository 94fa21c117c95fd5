"""What a query reports of a window: its output expressions with their types, or what only Spark knows of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from windloom.expressions.functions import truth
from windloom.expressions.node import Node
from windloom.expressions.types import NotKnownError
from windloom.expressions.typing import resolve
from windloom.model.clauses import WINDOW_EDGES
from windloom.model.expression import Expression
from windloom.plan.plan import Shape


@dataclass(frozen=True, slots=True)
class ResolvedShape:
    """The output columns after the window, and the condition for rows to be reported."""

    select: tuple[tuple[str, Node], ...]
    having: Node | None


@lru_cache(maxsize=4_096)
def resolve_shape(shape: Shape) -> ResolvedShape | str:
    """Return what is evaluated over the columns of the step, or a text about the part that needs Spark."""
    columns = dict(shape.groups + shape.columns)
    selected = shape.select or tuple((name, Expression.of_placeholder(name)) for name in columns)
    columns |= dict.fromkeys(WINDOW_EDGES, shape.time)
    select, place = [], ""
    try:
        for name, expression in selected:
            place = f"'{name}'"
            select.append((name, resolve(expression.tree, columns)))
        place = "HAVING"
        having = None if shape.having is None else truth("HAVING", resolve(shape.having.tree, columns))
    except NotKnownError as unknown:
        return f"{unknown} in {place}"
    return ResolvedShape(tuple(select), having)


def why_spark(shape: Shape) -> str | None:
    """Return the part of a shape's expressions that only Spark can evaluate; None if there is none."""
    resolved = resolve_shape(shape)
    return resolved if isinstance(resolved, str) else None
