"""Types of expressions by our own rules, so that a plan seldom needs Spark to be made.

A rule is here only if it says what Spark's analyzer says in every session: with ANSI mode on and off, whether decimal
operations may lose digits or not. What no rule covers has no type here, and Spark is asked.
"""

from windloom.language.result_types.expressions import expression_type
from windloom.language.result_types.rules import cast_target, type_of

__all__ = ["cast_target", "expression_type", "type_of"]
