"""The names that Spark gives to columns of the select list that have no alias.

Spark prints its own tree of the expression: every operator in parentheses, functions and columns in their plain form.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot import exp

_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Or: "OR",
    exp.And: "AND",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseAnd: "&",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
}

#: Functions whose last argument Spark shows also where it is left out: how many they take, and what it is then.
_DEFAULTS = {"approx_percentile": (3, "10000"), "percentile_approx": (3, "10000"), "percentile": (3, "1")}


def spark_name(node: exp.Expr, qualifiers: Collection[str]) -> str | None:
    """Return the name of an expression without an alias; None if it is not certain.

    A bare column or field is called by its last part; within an expression, a field stands after its struct.
    `qualifiers` are the names of the source, which Spark leaves out.
    """
    if isinstance(node, exp.Column | exp.Dot):
        return node.name
    whole = node.copy()
    for column in whole.find_all(exp.Column):
        parts = [part.name for part in column.parts]
        if len(parts) > 1 and parts[0].lower() in (name.lower() for name in qualifiers):
            parts = parts[1:]
        column.replace(exp.Identifier(this=".".join(parts)))
    try:
        return _shown(whole)
    except (_NotCertainError, RecursionError):
        return None


class _NotCertainError(Exception):
    """The expression has a part whose name only Spark knows."""


def _shown(node: exp.Expr) -> str:
    operator = _OPERATORS.get(type(node))
    if operator is not None:
        return f"({_shown(node.this)} {operator} {_shown(node.expression)})"
    match node:
        case exp.Paren():
            return _shown(node.this)
        case exp.Identifier():
            return node.name
        case exp.Dot():
            return f"{_shown(node.this)}.{node.expression.name}"
        case exp.Literal():
            return _literal(str(node.this))
        case exp.Boolean():
            return "true" if node.this else "false"
        case exp.Null():
            return "NULL"
        case exp.Star():
            return "1"
        case exp.NEQ():
            return f"(NOT ({_shown(node.this)} = {_shown(node.expression)}))"
        case exp.Not():
            return _negated(node)
        case exp.Neg():
            # A sign before a number is a part of it.
            if isinstance(node.this, exp.Literal) and not node.this.is_string:
                return f"-{_shown(node.this)}"
            return f"(- {_shown(node.this)})"
        case exp.Is():
            if not isinstance(node.expression, exp.Null):
                raise _NotCertainError
            return f"({_shown(node.this)} IS NULL)"
        case exp.In():
            if node.args.get("query") is not None:
                raise _NotCertainError
            return f"({_shown(node.this)} IN ({_listed(node.expressions)}))"
        case exp.Case():
            return _case(node)
        case exp.Cast():
            word = "TRY_CAST" if node.args.get("safe") else "CAST"
            return f"{word}({_shown(node.this)} AS {_type(node.args['to'])})"
        case exp.DPipe():
            return f"concat({_listed(_operands(node))})"
        case exp.If():
            parts = (node.this, node.args["true"], node.args.get("false"))
            return f"(IF({', '.join(_shown(part) for part in parts if part is not None)}))"
        case exp.Filter():
            return f"{_shown(node.this)} FILTER (WHERE {_shown(node.expression.this)})"
        case exp.Distinct():
            return f"DISTINCT {_listed(node.expressions)}"
        case exp.Anonymous():
            name, arguments = node.name.lower(), _listed(node.expressions)
            takes, last = _DEFAULTS.get(name, (0, ""))
            return f"{name}({arguments}, {last})" if len(node.expressions) == takes - 1 else f"{name}({arguments})"
    raise _NotCertainError


def _listed(nodes: list[exp.Expr]) -> str:
    return ", ".join(map(_shown, nodes))


def _operands(node: exp.Expr) -> list[exp.Expr]:
    operands: list[exp.Expr] = []
    while isinstance(node, exp.DPipe):
        operands.insert(0, node.expression)
        node = node.this
    return [node, *operands]


def _negated(node: exp.Expr) -> str:
    inner = node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return f"({_shown(inner.this)} IS NOT NULL)"
    return f"(NOT {_shown(inner)})"


def _case(node: exp.Expr) -> str:
    subject = node.this
    parts = ["CASE"]
    for branch in node.args["ifs"]:
        condition = _shown(branch.this) if subject is None else f"({_shown(subject)} = {_shown(branch.this)})"
        parts.append(f"WHEN {condition} THEN {_shown(branch.args['true'])}")
    if node.args.get("default") is not None:
        parts.append(f"ELSE {_shown(node.args['default'])}")
    return " ".join([*parts, "END"])


def _literal(text: str) -> str:
    """Return a literal, which is there as the user wrote it: a string without its quotes, a number without its type."""
    if text[:1] in "'\"" and text[-1:] == text[:1] and "\\" not in text and text[0] not in text[1:-1]:
        return text[1:-1]
    if re.fullmatch(r"\d+", text) or re.fullmatch(r"\d*\.\d+", text):
        return text if not text.startswith(".") else f"0{text}"
    raise _NotCertainError


def _type(node: exp.Expr) -> str:
    text = node.sql(dialect="spark").upper()
    if not re.fullmatch(r"[A-Z_]+(\(\d+(, ?\d+)?\))?", text):
        raise _NotCertainError
    return text.replace(", ", ",")
