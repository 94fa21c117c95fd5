"""The types of expressions by our own rules, so that making a plan seldom needs Spark.

A rule is here only if it gives what Spark's analyzer gives in every session: with ANSI mode on and off, whether decimal
operations may lose digits or not. For what no rule covers, Spark is asked.
"""

from windloom.language.result_types.expressions import expression_type
from windloom.language.result_types.rules import cast_target, type_of

__all__ = ["cast_target", "expression_type", "type_of"]
