"""The types of expressions by our own rules, so that making a plan seldom needs Spark.

A rule is here only if it gives the same type as Spark's analyzer in every session: with ANSI mode on or off, and
whether decimal operations may lose digits or not. Spark is asked for everything that no rule covers.
"""

from windloom.language.result_types.expressions import expression_type
from windloom.language.result_types.rules import cast_target, type_of

__all__ = ["cast_target", "expression_type", "type_of"]
