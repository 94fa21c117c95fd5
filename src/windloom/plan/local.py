"""A projection that needs no Spark: the expressions of a woven scan with their types, for Arrow columns."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.aggregates.planned import PlannedComponent
from windloom.expressions.node import Node


@dataclass(frozen=True, slots=True)
class LocalColumn:
    """One projected column. With `component`, its card makes the column from the value of the expression."""

    node: Node
    component: PlannedComponent | None = None


@dataclass(frozen=True, slots=True)
class LocalProjection:
    """The columns that a woven scan projects; `reads` are the stream's columns that it needs, including the time."""

    reads: tuple[str, ...]
    where: Node | None
    predicates: tuple[Node, ...]
    columns: tuple[LocalColumn, ...]
