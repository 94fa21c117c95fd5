"""Reading holistic aggregates: DISTINCT, and the constants k and p among the arguments."""

from __future__ import annotations

from sqlglot import exp

from windloom.language.expressions import Binder
from windloom.language.functions import SUPPORTED
from windloom.model import FUNCTIONS
from windloom.model.holistic import HOLISTIC_FUNCTIONS, WITHOUT_CONSTANT, check_parameters, takes_number_first

#: Of these, a value counts once in any case.
_SAME_IF_DISTINCT = ("min", "max")


def is_holistic(function: str, node: exp.Anonymous) -> bool:
    """Does it take constants or DISTINCT?"""
    return function in HOLISTIC_FUNCTIONS or any(isinstance(one, exp.Distinct) for one in node.expressions)


def read_arguments(function: str, node: exp.Anonymous, binder: Binder) -> tuple[str, exp.Expr, tuple[float, ...]]:
    """Name of the aggregate, the expression it takes, and its constants."""
    name, arguments = FUNCTIONS[function], node.expressions
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return _read_distinct(function, name, arguments[0], binder)
    if function not in HOLISTIC_FUNCTIONS or function in WITHOUT_CONSTANT:
        if len(arguments) != 1:
            message = f"{function}() takes one argument, not {len(arguments)}"
            raise binder.error(message, node, f"for example {function}(price)")
        return name, arguments[0], (0.5,) if function == "median" else ()
    first = takes_number_first(name)
    example = f"for example {function}(10, page)" if first else f"for example {function}(price, 0.95)"
    if len(arguments) != 2:
        raise binder.error(f"{function}() takes two arguments, not {len(arguments)}", node, example)
    number, argument = arguments if first else arguments[::-1]
    parameters = (_read_number(function, number, binder, example),)
    wrong = check_parameters(name, parameters)
    if wrong is not None:
        raise binder.error(f"{function}() cannot be taken: {wrong}", number, example)
    return name, argument, parameters


def _read_distinct(
    function: str, name: str, distinct: exp.Distinct, binder: Binder
) -> tuple[str, exp.Expr, tuple[float, ...]]:
    given = distinct.expressions
    if len(given) != 1 or distinct.args.get("on") is not None:
        message = f"{function}(DISTINCT …) takes one argument, not {len(given)}"
        raise binder.error(
            message, distinct, "for example count(DISTINCT user), or make one value of them: concat_ws(…)"
        )
    if name == "count":
        return "count_distinct", given[0], ()
    if name in _SAME_IF_DISTINCT:
        return name, given[0], ()
    message = f"{function}(DISTINCT …) is not supported"
    raise binder.error(message, distinct, f"only count, min and max take DISTINCT; without it, {SUPPORTED}")


def _read_number(function: str, node: exp.Expr, binder: Binder, example: str) -> float:
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
    which = "k" if takes_number_first(FUNCTIONS[function]) else "p"
    raise binder.error(f"{function}() needs a number as its {which}, the same for all tuples", node, example)
