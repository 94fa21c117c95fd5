"""Expressions over aggregates with Spark's types, as far as they are known without Spark."""

from windloom.plan.expressions.node import Node, NotKnownError
from windloom.plan.expressions.resolve import ResolvedShape, knows_outputs, resolve, resolve_shape, why_spark

__all__ = ["Node", "NotKnownError", "ResolvedShape", "knows_outputs", "resolve", "resolve_shape", "why_spark"]
