"""Reads holistic aggregates: DISTINCT, and the constants k and p among the arguments."""

from __future__ import annotations

from sqlglot import exp

from windloom.aggregates import FUNCTIONS
from windloom.language.expressions import Binder
from windloom.language.functions import SUPPORTED
from windloom.model.aggregate import Constant, Function, find_function

#: For these, DISTINCT changes nothing.
_SAME_IF_DISTINCT = ("min", "max")


def is_holistic(function: Function, node: exp.Anonymous) -> bool:
    """Return whether an aggregate takes constants or DISTINCT."""
    return function.constant is not None or any(isinstance(expression, exp.Distinct) for expression in node.expressions)


def read_arguments(spelling: str, node: exp.Anonymous, binder: Binder) -> tuple[str, exp.Expr, tuple[float, ...]]:
    """Return the name of the aggregate, the expression it takes, and its constants."""
    name, arguments = FUNCTIONS[spelling], node.expressions
    function = find_function(name)
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return _read_distinct(spelling, name, arguments[0], binder)
    implied, constant = function.spellings.get(spelling, ()), function.constant
    if constant is None or implied:
        if len(arguments) != 1:
            message = f"{spelling}() takes one argument, not {len(arguments)}"
            raise binder.error(message, node, f"for example {spelling}(price)")
        return name, arguments[0], implied
    example = f"for example {spelling}({constant.example})"
    if len(arguments) != 2:
        raise binder.error(f"{spelling}() takes two arguments, not {len(arguments)}", node, example)
    number, argument = arguments if constant.goes_first else arguments[::-1]
    read = _read_number(spelling, number, constant, binder, example)
    wrong = constant.check(read)
    if wrong is not None:
        raise binder.error(f"{spelling}() cannot be taken: {wrong}", number, example)
    return name, argument, (read,)


def _read_distinct(
    function: str, name: str, distinct: exp.Distinct, binder: Binder
) -> tuple[str, exp.Expr, tuple[float, ...]]:
    arguments = distinct.expressions
    if len(arguments) != 1 or distinct.args.get("on") is not None:
        message = f"{function}(DISTINCT …) takes one argument, not {len(arguments)}"
        raise binder.error(
            message, distinct, "for example count(DISTINCT user), or make one value from them: concat_ws(…)"
        )
    if name == "count":
        return "count_distinct", arguments[0], ()
    if name in _SAME_IF_DISTINCT:
        return name, arguments[0], ()
    message = f"{function}(DISTINCT …) is not supported"
    raise binder.error(message, distinct, f"only count, min and max take DISTINCT; without it, {SUPPORTED}")


def _read_number(function: str, node: exp.Expr, constant: Constant, binder: Binder, example: str) -> float:
    sign, inner = 1, node
    while isinstance(inner, exp.Paren | exp.Neg):
        sign = -sign if isinstance(inner, exp.Neg) else sign
        inner = inner.this
    if isinstance(inner, exp.Literal) and not inner.is_string:
        try:
            text = str(inner.this)
            return sign * (int(text) if text.isdigit() else float(text))
        except ValueError:
            pass
    message = f"{function}() needs a number as its {constant.letter}, the same for all tuples"
    raise binder.error(message, node, example)
