"""Random expressions over aggregates as text, rows of nasty values, and how Spark and the evaluator see both."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from windloom.expressions.evaluate import DecodedColumns, evaluate
from windloom.expressions.node import Node
from windloom.expressions.typing import resolve
from windloom.language.select import parse_query
from windloom.model import DataType, Expression, Stream
from windloom.model.types import arrow_type

#: Picks one of several, so that both Hypothesis and a seeded generator can drive what is random here.
Choose = Callable[[Sequence[Any]], Any]

_INTS = [None, 0, 1, -1, 2, 3, 7, -10, 100, 2**31 - 1, -(2**31)]
_LONGS = [*_INTS, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 3_000_000_000]
_DOUBLES = [
    *(None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 0.5, -0.5, 1.0, 1.5, 2.5, -2.5, 2.675, 1.005, -0.4, 0.285),
    *(1e15, 1e17, 9.007199254740993e15, 1e300, 5e-324, 1 / 3, -7.25, 123456.785, 2.0**63, -(2.0**63), 2147483647.5),
]
_FLOATS = [None, math.nan, math.inf, 0.0, -0.0, 0.5, -1.5, 0.10000000149011612, 16777216.0, 3.4028234663852886e38]


def _decimals(precision: int, scale: int) -> list[Decimal | None]:
    most = Decimal(f"{10 ** (precision - scale) - 1}.{'9' * scale}")
    unit = Decimal(1).scaleb(-scale)
    some = [
        Decimal(digits).quantize(unit) for digits in ("0", "1", "-1", "2.5", "0.05", "-7.25", "3", "33.335", "-0.045")
    ]
    return [None, *some, unit, -unit, most, Decimal(f"-{most}"), 5 * unit, 3 * unit]


#: Name, type and values of each column.
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "y": ("tinyint", [None, 0, 1, -1, 127, -128]),
    "i": ("int", _INTS),
    "j": ("int", _INTS),
    "l": ("bigint", _LONGS),
    "m": ("bigint", _LONGS),
    "n": ("bigint", [None, 0, 1, 2, 3, 5, 12, 1000]),
    "f": ("double", _DOUBLES),
    "h": ("double", _DOUBLES),
    "k": ("double", [None, 0.0, 1.0, 2.5, 10.25, 99.995, -3.125]),
    "g": ("float", _FLOATS),
    "c": ("decimal(10,2)", _decimals(10, 2)),
    "d": ("decimal(20,2)", _decimals(20, 2)),
    "e": ("decimal(18,6)", _decimals(18, 6)),
    "w": ("decimal(38,10)", _decimals(38, 10)),
    "b": ("boolean", [None, True, False]),
    "q": ("boolean", [None, True, False]),
    "s": ("string", [None, "", "a", "ab", "b", "é", "z"]),
    "u": ("string", [None, "a", "b"]),
    "p": ("date", [None, date(2024, 1, 31), date(1969, 12, 31), date(2024, 2, 2)]),
    "t": ("timestamp", [None, datetime(2024, 1, 31, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC)]),
}
KINDS = {name: DataType.parse(kind) for name, (kind, _) in COLUMNS.items()}
STREAM = Stream("events", {"ts": DataType.parse("timestamp"), **KINDS}, time="ts")

_NUMBERS = [name for name, kind in KINDS.items() if kind.is_numeric]
_LITERALS = ["0", "1", "-1", "2", "10", "3L", "100", "0.5", "2.50", "-0.05", "1E2", "0D", "2147483647", "1000000.001"]
_TYPES = ["int", "bigint", "double", "float", "smallint", "decimal(10,2)", "decimal(20,4)", "decimal(38,10)"]


class Grammar:
    """Expressions as text over `max(column)`, which has the column's type."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose

    def expression(self, depth: int) -> str:
        kinds = [self.number, self.number, self.number, self.condition, self.text, self.instant]
        found: str = self._choose(kinds)(depth)
        return found

    def number(self, depth: int) -> str:
        if depth == 0:
            name = self._choose([*_NUMBERS, ""])
            return f"max({name})" if name else str(self._choose(_LITERALS))
        a, b = self.number(depth - 1), self.number(self._choose(range(depth)))
        condition = self.condition(self._choose(range(depth)))
        binary = [f"({a}) {op} ({b})" for op in ("+", "-", "*", "/", "%", "DIV")] * 2
        digits = self._choose([0, 1, 2, 5])
        return str(
            self._choose(
                [
                    *binary,
                    f"-({a})",
                    f"CASE WHEN {condition} THEN {a} ELSE {b} END",
                    f"CASE WHEN {condition} THEN {a} END",
                    f"CASE {a} WHEN {b} THEN {b} WHEN 1 THEN NULL ELSE 2 END",
                    f"if({condition}, {a}, {b})",
                    f"coalesce({a}, {b}, 0)",
                    f"nvl({a}, {b})",
                    f"nvl2({a}, {b}, 1)",
                    f"nullif({a}, {b})",
                    f"{a} / nullif({b}, 0)",
                    f"CAST({a} AS {self._choose(_TYPES)})",
                    f"CAST({b} AS {self._choose(_TYPES)})",
                    f"abs({a})",
                    f"round({a})",
                    f"round({a}, {digits})",
                    f"round({b}, {digits})",
                    f"floor({a})",
                    f"ceil({b})",
                    f"sqrt({a})",
                    f"greatest({a}, {b})",
                    f"least({a}, {b}, 1)",
                    f"mod({a}, {b})",
                    f"try_divide({a}, {b})",
                    f"positive({a})",
                ]
            )
        )

    def condition(self, depth: int) -> str:
        if depth == 0:
            return str(
                self._choose(["max(b)", "max(q)", "max(n) > 2", "max(k) <= 2.5", "max(n) > NULL", "max(c) <> 0"])
            )
        kind = self._choose([self.number, self.number, self.text, self.instant])
        a, b = kind(depth - 1), kind(depth - 1)
        left, right = self.condition(depth - 1), self.condition(self._choose(range(depth)))
        compare = self._choose(["=", "<>", "<", "<=", ">", ">=", "<=>"])
        return str(
            self._choose(
                [
                    f"({a}) {compare} ({b})",
                    f"({a}) {compare} ({b})",
                    f"({a}) IS {self._choose(['', 'NOT '])}NULL",
                    f"({a}) IS {self._choose(['', 'NOT '])}DISTINCT FROM ({b})",
                    f"({a}) {self._choose(['', 'NOT '])}BETWEEN ({b}) AND ({a})",
                    f"({a}) {self._choose(['', 'NOT '])}IN (({b}), ({a}))",
                    f"max(l) IN (1, 2, NULL, 4, 5, 6, 7, 8, 9, 10, 11, {self._choose(['12', '2147483647'])})",
                    "max(c) NOT IN (1, 2.5, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0.05)",
                    f"max({self._choose(['f', 'h', 'g'])}) IN (1, 2.5, 7.0)",
                    f"({left}) AND ({right})",
                    f"({left}) OR ({right})",
                    f"NOT ({left})",
                    f"({left}) IS {self._choose(['', 'NOT '])}{self._choose(['TRUE', 'FALSE'])}",
                    f"isnan(max({self._choose(['f', 'g'])}))",
                    f"CASE WHEN {left} THEN {right} ELSE max(b) END",
                ]
            )
        )

    def text(self, depth: int) -> str:
        leaf = str(self._choose(["max(s)", "max(u)", "'a'", "'é'", "''"]))
        if depth == 0:
            return leaf
        other = self.text(depth - 1)
        options = [f"coalesce({leaf}, {other})", f"if({self.condition(depth - 1)}, {leaf}, {other})"]
        return str(self._choose([*options, f"greatest({leaf}, {other})", f"nullif({leaf}, {other})"]))

    def instant(self, depth: int) -> str:
        name = self._choose(["p", "t"])
        leaf, constant = f"max({name})", "DATE '2024-01-31'" if name == "p" else f"max({name})"
        if depth == 0:
            return leaf
        return str(self._choose([leaf, f"coalesce({leaf}, {constant})", f"least({leaf}, {constant})"]))


@dataclass(frozen=True, slots=True)
class Drawn:
    """An expression: as it was written, over the columns of the table for Spark, and with types."""

    text: str
    sql: str
    node: Node


def read(text: str) -> Drawn:
    """Raises NotKnownError where only Spark knows it."""
    query = parse_query("q", f"SELECT {text} AS x, count(*) AS n FROM events [TUMBLE 1 second]", {"events": STREAM})
    output, _ = query.outputs  # counted too: without an aggregate it would be a query of rows
    names = [aggregate.argument.column or "" for aggregate in query.aggregates if aggregate.argument is not None]
    expression = output.expression or Expression.of_placeholder("__a0")
    kinds = {f"__a{i}": KINDS[name] for i, name in enumerate(names)}
    node = _renamed(resolve(expression.tree, kinds), names)
    return Drawn(text, re.sub(r"__a(\d+)", lambda match: names[int(match[1])], expression.sql), node)


def _renamed(node: Node, names: Sequence[str]) -> Node:
    if node.op == "read":
        return Node("read", node.kind, value=names[int(node.value.removeprefix("__a"))])
    return Node(node.op, node.kind, tuple(_renamed(operand, names) for operand in node.operands), node.value)


def nasty_rows(rows: int, seed: int = 7) -> pa.Table:
    """Rows in which every value meets most others."""
    draw = random.Random(seed)
    columns = {}
    for name, (_, values) in COLUMNS.items():
        drawn = [values[i % len(values)] for i in range(rows)]
        draw.shuffle(drawn)
        columns[name] = pa.array(drawn, arrow_type(KINDS[name]))
    return pa.table({"row": pa.array(range(rows), pa.int32()), **columns})


def evaluated(node: Node, table: pa.Table) -> pa.Array:
    """By the evaluator: a value for each row."""
    value = evaluate(node, DecodedColumns(table))
    return pa.repeat(value, table.num_rows) if isinstance(value, pa.Scalar) else value


def same(left: Any, right: Any) -> bool:
    """Equal to the last bit; NaN is NaN, and -0.0 is not 0.0."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or (left == right and _sign(left) == _sign(right))
    return type(left) is type(right) and bool(left == right)


def _sign(value: float) -> float:
    return math.copysign(1.0, value)
