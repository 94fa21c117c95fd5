"""Columns of a Spark Connect client as SQL: the client keeps them as trees of names, literals and functions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import types

from windloom.errors import WindloomError
from windloom.language.sql.tokens import spelled
from windloom.model.time import parse_duration
from windloom.model.windows import WINDOW_FUNCTIONS
from windloom.spark.plans.written import RefusedPlanError, WrittenWindow, duration_literal

#: A node of a column's tree.
Node = Any

#: Functions that the client names by operators.
_INFIX = (
    *("+", "-", "*", "/", "%", "&", "|", "^", "=", "==", "<=>", "<", "<=", ">", ">=", "!=", "<>", "and", "or"),
    *("like", "ilike", "rlike"),
)
_PREFIX = {"not": "NOT", "!": "NOT", "negative": "-", "~": "~"}
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_ALIAS = re.compile(r"\s+AS\s+(\w+|`[^`]+`)\s*$", re.IGNORECASE)
#: Names of columns in SQL that the user wrote: words that call no function and are no fields, outside strings.
_WORDS = re.compile(
    r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|(?<![\w.`])(?:`(?P<quoted>[^`]+)`|(?P<plain>[A-Za-z_]\w*))(?!\s*\(|\w)"""
)


class UnreadableColumnError(Exception):
    """A column that has no form as SQL; it names what stands in the way."""


class ColumnPrinter:
    """Prints columns over the names of a plan; `names` gives their SQL over the leaf or aggregates, in lower case."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = dict(names)
        self.window: WrittenWindow | None = None
        self._variables: dict[str, str] = {}  # of lambdas around: a name that does not change from run to run
        self._on_leaf = {sql: name for name, sql in names.items()}

    def text(self, node: Node) -> str:
        """Return the SQL of a node."""
        printer = _PRINTERS.get(type(node).__name__)
        if printer is None:
            raise UnreadableColumnError(f"{type(node).__name__} ({node})")
        return printer(self, node)

    def column(self, name: str) -> str:
        """Return the SQL of a column by its name, which may have a qualifier before it and fields after it."""
        parts = [quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(name)]
        for start in range(len(parts)):
            meaning = self.names.get(parts[start].lower())
            if meaning is not None and start < 2:
                return ".".join([meaning, *(f"`{field}`" for field in parts[start + 1 :])])
        raise UnreadableColumnError(f"column '{name}'")

    def _reference(self, node: Node) -> str:
        return self.column(node._unparsed_identifier)

    def _function(self, node: Node) -> str:
        name = str(node._name)
        if name.lower() in WINDOW_FUNCTIONS:
            return self._window_call(name.lower(), node._args)
        arguments = [self.text(each) for each in node._args]
        if name.lower() in _INFIX and len(arguments) == 2:
            return f"({arguments[0]} {name.upper().replace('==', '=')} {arguments[1]})"
        if name.lower() in _PREFIX and len(arguments) == 1:
            return f"({_PREFIX[name.lower()]} {arguments[0]})"
        if name.lower() == "in":
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
        return f"{name}({'DISTINCT ' if node._is_distinct else ''}{', '.join(arguments)})"

    def _window_call(self, function: str, arguments: list[Node]) -> str:
        time, *lengths = arguments
        sql = self.text(time)
        if not all(isinstance(getattr(each, "_value", None), str) for each in lengths):
            raise RefusedPlanError(
                f"{function}() needs durations that do not vary",
                f"it is {function}({', '.join(map(str, arguments))})",
                f"write them as text: {function}('ts', '5 minutes')",
            )
        try:
            ticks = [parse_duration(each._value) for each in lengths]
        except WindloomError as error:
            raise RefusedPlanError(error.message, error.detail, error.hint) from None
        found = WrittenWindow(function, sql, self._on_leaf.get(sql), tuple(map(duration_literal, ticks)))
        if self.window is not None and self.window != found:
            raise RefusedPlanError("the DataFrame has two windows", f"{self.window} and {found}")
        self.window = found
        return function

    def _alias(self, node: Node) -> str:
        return self.text(node._child)

    def _case(self, node: Node) -> str:
        words = [f"WHEN {self.text(condition)} THEN {self.text(value)}" for condition, value in node._branches]
        words += [] if node._else_value is None else [f"ELSE {self.text(node._else_value)}"]
        return f"CASE {' '.join(words)} END"

    def _cast(self, node: Node) -> str:
        kind = node._data_type if isinstance(node._data_type, str) else node._data_type.simpleString()
        return f"{'TRY_' if node._eval_mode == 'try' else ''}CAST({self.text(node._expr)} AS {kind})"

    def _sql(self, node: Node) -> str:
        """Return SQL that the user wrote, with the meanings of its names."""

        def meaning_of(word: re.Match[str]) -> str:
            name = word["quoted"] or word["plain"]
            meaning = self.names.get(name.lower()) if name else None
            if meaning is None or meaning == spelled(name):
                return word[0]
            return meaning if re.fullmatch(r"\w+|`[^`]+`", meaning) else f"({meaning})"

        sql = _WORDS.sub(meaning_of, _ALIAS.sub("", node._expr))
        return f"({sql})" if " " in sql else sql

    def _extract(self, node: Node) -> str:
        return f"{self.text(node._child)}[{self.text(node._extraction)}]"

    def _lambda(self, node: Node) -> str:
        inner = ColumnPrinter(self.names)
        inner._variables = dict(self._variables)
        for each in node._arguments:
            inner._variables[each._name_parts[0]] = f"x_{len(inner._variables) + 1}"
        names = [inner._variables[each._name_parts[0]] for each in node._arguments]
        head = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"{head} -> {inner.text(node._function)}"

    def _variable(self, node: Node) -> str:
        return self._variables[node._name_parts[0]]

    def _star(self, node: Node) -> str:
        if node._unparsed_target is not None:
            raise UnreadableColumnError(f"'{node._unparsed_target}'")
        return "*"

    def _order(self, node: Node) -> str:
        nulls = "FIRST" if node._nullsFirst else "LAST"
        return f"{self.text(node._child)} {'ASC' if node._ascending else 'DESC'} NULLS {nulls}"


def literal(value: Any, kind: types.DataType) -> str:
    """Return a literal of the client as SQL.

    >>> literal("it's", types.StringType()), literal(3, types.LongType()), literal(0.5, types.DoubleType())
    ("'it\\\\'s'", '3L', '0.5D')
    """
    if value is None:
        return "NULL" if isinstance(kind, types.NullType) else f"CAST(NULL AS {kind.simpleString()})"
    match kind:
        case types.StringType():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case types.BooleanType():
            return "TRUE" if value else "FALSE"
        case types.DoubleType() | types.FloatType():
            if not math.isfinite(value):
                return f"CAST('{value}' AS {kind.simpleString()})"
            return f"{value!r}D" if isinstance(kind, types.DoubleType) else f"CAST({value!r}D AS FLOAT)"
        case types.DecimalType():
            return f"CAST({value}BD AS {kind.simpleString()})"
        case types.DateType():
            return f"DATE '{kind.fromInternal(value)}'"
        case types.TimestampType():
            return f"timestamp_micros({value}L)"
        case types.TimestampNTZType():
            return f"TIMESTAMP_NTZ '{kind.fromInternal(value)}'"
        case types.LongType():
            return f"{value}L"
        case types.IntegerType():
            return str(value)
        case types.ShortType() | types.ByteType():
            return f"CAST({value} AS {kind.simpleString()})"
        case types.BinaryType():
            return f"X'{bytes(value).hex().upper()}'"
        case types.ArrayType():
            return f"array({', '.join(literal(each, kind.elementType) for each in value)})"
        case types.DayTimeIntervalType():
            return f"INTERVAL '{value // 1_000_000}.{value % 1_000_000:06}' SECOND"
    raise UnreadableColumnError(f"a literal of type {kind.simpleString()}")


_PRINTERS: dict[str, Callable[[ColumnPrinter, Node], str]] = {
    "ColumnReference": ColumnPrinter._reference,
    "UnresolvedFunction": ColumnPrinter._function,
    "LiteralExpression": lambda _, node: literal(node._value, node._dataType),
    "ColumnAlias": ColumnPrinter._alias,
    "CaseWhen": ColumnPrinter._case,
    "CastExpression": ColumnPrinter._cast,
    "SQLExpression": ColumnPrinter._sql,
    "UnresolvedExtractValue": ColumnPrinter._extract,
    "LambdaFunction": ColumnPrinter._lambda,
    "UnresolvedNamedLambdaVariable": ColumnPrinter._variable,
    "UnresolvedStar": ColumnPrinter._star,
    "SortOrder": ColumnPrinter._order,
}
