"""Calls of aggregates that mean an expression of others: `count_if(x > 0)`, `mode() WITHIN GROUP (ORDER BY x)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from sqlglot import exp

from windloom.aggregates.equivalents import EQUIVALENTS, WITHIN_GROUP, Equivalent
from windloom.aggregates.picks import Picks
from windloom.aggregates.registry import FUNCTIONS
from windloom.language.sql.binder import Binder, Call
from windloom.language.sql.syntax import parse_expression
from windloom.language.sql.terms import inside, number_of
from windloom.model.aggregate import STANDARD_ERROR

#: What stands for the arguments of a meaning in examples.
_EXAMPLES = {"x": "price", "y": "volume", "p": "0.95", "separator": "', '", "condition": "price > 10"}

#: Functions whose p may be an array, so that the answer is one.
_OF_MANY = ("percentile", "approx_percentile")


def meaning_of(call: Call, binder: Binder) -> exp.Expr | None:
    """Return the expression that a call means; None if it is a call of a function that an aggregator declares."""
    name, arguments = call.function, list(call.node.expressions)
    if call.within is not None:
        return _ordered(call, binder)
    if name in WITHIN_GROUP and name not in FUNCTIONS:
        example = f"for example {name}(0.95) WITHIN GROUP (ORDER BY price)"
        raise binder.error(f"{name}() needs WITHIN GROUP (ORDER BY …)", call.node, example)
    if name in EQUIVALENTS:
        return _replaced(EQUIVALENTS[name], arguments, call, binder)
    if FUNCTIONS.get(name) in Picks.kinds and arguments:
        picked = arguments[0].this if isinstance(arguments[0], exp.IgnoreNulls | exp.RespectNulls) else arguments[0]
        picked = inside(picked)
        if isinstance(picked, exp.Anonymous) and (fields := binder.fields_of(picked)):
            return _picked_fields(fields, call)
    plain: list[exp.Expr] | None = None
    match FUNCTIONS.get(name), len(arguments):
        case "approx_count_distinct", 2:
            plain = _without_deviation(call, binder)
        case "mode", 2:
            plain = _without_flag(call, binder)
        case "approx_percentile", 3:
            plain = _without_accuracy(call, binder)
    if plain is None and not (len(arguments) > 1 and _is_array(arguments[1]) and _reads_many(name)):
        return None
    plain = arguments if plain is None else plain
    if len(plain) > 1 and _is_array(plain[1]):
        return _filtered(_of_many(name, plain[0], inside(plain[1]).expressions, call, binder), call)
    return _filtered(_called(name, plain, call), call)


def _reads_many(name: str) -> bool:
    return name in _OF_MANY or FUNCTIONS.get(name) in _OF_MANY


def _is_array(node: exp.Expr) -> bool:
    node = inside(node)
    return isinstance(node, exp.Anonymous) and node.name.lower() == "array"


def _called(name: str, arguments: list[exp.Expr], call: Call) -> exp.Expr:
    node = exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])
    node.meta.update(call.node.meta)  # so that errors show the place of the call
    return node


def _ordered(call: Call, binder: Binder) -> exp.Expr:
    """Return what a function of WITHIN GROUP (ORDER BY x) means."""
    assert call.within is not None
    if call.function not in WITHIN_GROUP:
        known = ", ".join(f"{name}()" for name in WITHIN_GROUP)
        raise binder.error(f"{call.function}() takes no WITHIN GROUP", call.node, f"it belongs to {known}")
    ordered = call.within.expressions
    if len(ordered) != 1 or not isinstance(ordered[0], exp.Ordered):
        raise binder.error("WITHIN GROUP orders by one expression", call.node, "write WITHIN GROUP (ORDER BY price)")
    if ordered[0].args.get("desc"):
        hint = "order ascending; counted from the other end, p is 1 - p"
        if call.function == "mode":
            hint = "order ascending: of equally frequent values, the smallest is taken"
        raise binder.error(f"{call.function}() in descending order is not supported", ordered[0].this, hint)
    return _replaced(WITHIN_GROUP[call.function], list(call.node.expressions), call, binder, x=ordered[0].this)


def _replaced(
    meaning: Equivalent, arguments: list[exp.Expr], call: Call, binder: Binder, **others: exp.Expr
) -> exp.Expr:
    """Return the text of a meaning with the arguments in the place of their names."""
    takes = len(meaning.arguments)
    if "separator" in meaning.arguments and len(arguments) == 1:
        arguments = [*arguments, exp.Literal(this="''", is_string=True)]
    if len(arguments) != takes:
        # FIRST says with its second argument what to do with NULLs, and so does what is written as FIRST.
        if call.function == "any_value" and len(arguments) == 2 and isinstance(inside(arguments[1]), exp.Boolean):
            return _filtered(_called("first", arguments, call), call)
        wanted = {0: "no argument", 1: "one argument", 2: "two arguments"}[takes]
        message = f"{call.function}() takes {wanted}, not {len(arguments)}"
        example = ", ".join(_EXAMPLES[argument] for argument in meaning.arguments)
        raise binder.error(message, call.node, f"for example {call.function}({example})")
    meant = others | dict(zip(meaning.arguments, arguments, strict=True))

    def replaced(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in meant:
            written = meant[node.name].copy()
            return written if isinstance(written, exp.Column | exp.Literal) else exp.Paren(this=written)
        if isinstance(node, exp.Anonymous):
            node.meta.update(call.node.meta)
        return node

    return _filtered(_read(meaning.text).copy().transform(replaced), call)


@cache
def _read(text: str) -> exp.Expr:
    return parse_expression(text)


def _filtered(node: exp.Expr, call: Call) -> exp.Expr:
    """Return an expression whose aggregates also have what follows the call: FILTER, IGNORE NULLS."""

    def filtered(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Filter):
            own, nulls = each.expression.this, _said_of_nulls(each.this, call)
            if call.where is not None:
                own = exp.And(this=exp.Paren(this=call.where.copy()), expression=exp.Paren(this=own))
            return exp.Filter(this=nulls, expression=exp.Where(this=own))
        if not isinstance(each, exp.Anonymous) or each.name.lower() not in FUNCTIONS:
            for key, value in list(each.args.items()):
                if isinstance(value, exp.Expr):
                    each.set(key, filtered(value))
                elif isinstance(value, list):
                    each.set(key, [filtered(item) if isinstance(item, exp.Expr) else item for item in value])
            return each
        each = _said_of_nulls(each, call)
        return each if call.where is None else exp.Filter(this=each, expression=exp.Where(this=call.where.copy()))

    return filtered(node)


def _said_of_nulls(node: exp.Expr, call: Call) -> exp.Expr:
    if call.ignore_nulls is None:
        return node
    return (exp.IgnoreNulls if call.ignore_nulls else exp.RespectNulls)(this=node)


def _of_many(name: str, argument: exp.Expr, shares: list[exp.Expr], call: Call, binder: Binder) -> exp.Expr:
    """Return an array of one answer for each p; NULL where there are no values, as in Spark."""
    if not shares:
        raise binder.error(f"{name}() needs a p in its array", call.node, f"for example {name}(price, array(0.5, 0.9))")
    answers = [_called(name, [argument, share], call) for share in shares]
    any_value = exp.GT(this=_called("count", [argument], call), expression=exp.Literal.number(0))
    listed = exp.Anonymous(this="array", expressions=answers)
    return exp.Case(ifs=[exp.If(this=any_value, true=listed)])


def _picked_fields(fields: Mapping[str, exp.Expr], call: Call) -> exp.Expr:
    """Return the struct of what is picked field by field: of one tuple, as all picks by one order are.

    A struct of NULLs is not NULL, so that there is nothing to ignore; but where no tuple is picked, the answer is NULL.
    """
    order = [] if FUNCTIONS[call.function] in Picks.by_tick else call.node.expressions[1:]
    picks = [
        exp.Alias(this=_called(call.function, [field, *order], call), alias=exp.to_identifier(name, quoted=True))
        for name, field in fields.items()
    ]
    found = exp.GT(this=_called("count", order or [exp.Star()], call), expression=exp.Literal.number(0))
    struct = exp.Anonymous(this="struct", expressions=picks)
    return _filtered(exp.Case(ifs=[exp.If(this=found, true=struct)]), replace(call, ignore_nulls=None))


def _without_deviation(call: Call, binder: Binder) -> list[exp.Expr]:
    """Return the arguments of APPROX_COUNT_DISTINCT(x, rsd) without rsd, which must not ask for more than it has."""
    argument, deviation = call.node.expressions
    wanted = number_of(deviation)
    if wanted is None or wanted <= 0:
        hint = "for example approx_count_distinct(user, 0.05)"
        raise binder.error("approx_count_distinct() needs a number above 0 as its rsd", deviation, hint)
    if wanted < STANDARD_ERROR:
        message = f"approx_count_distinct() has a relative standard deviation of {STANDARD_ERROR:.4f}, not {wanted}"
        raise binder.error(message, deviation, "count exactly: count(DISTINCT …)")
    return [argument]


def _without_flag(call: Call, binder: Binder) -> list[exp.Expr]:
    """Return the arguments of MODE(x, deterministic) without the second: MODE is always deterministic."""
    argument, flag = call.node.expressions
    if not isinstance(inside(flag), exp.Boolean):
        raise binder.error("mode() takes true or false as its second argument", flag, "leave it out")
    return [argument]


def _without_accuracy(call: Call, binder: Binder) -> list[exp.Expr]:
    """Return the arguments of APPROX_PERCENTILE(x, p, accuracy) without the accuracy: the answer is exact."""
    *arguments, accuracy = call.node.expressions
    wanted = number_of(accuracy)
    if wanted is None or wanted < 1 or wanted != int(wanted):
        hint = f"for example {call.function}(price, 0.95, 10000); the answer is exact, whatever it is"
        raise binder.error(f"{call.function}() needs a whole number above 0 as its accuracy", accuracy, hint)
    return arguments
