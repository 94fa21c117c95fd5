"""Expressions and plans of Spark's JVM, as text; together with `classic.py`, all that knows its classes.

Spark prints resolved expressions as SQL, but by the names of columns, which may mean different columns at different
places of a plan. So every column is replaced by an identifier of our own before an expression is printed, and the
identifier by the meaning of the column afterwards. A few expressions lose something when Spark prints them; these, and
what contains them, are printed here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

#: An object of the JVM.
Java = Any

_CATALYST = "org.apache.spark.sql.catalyst.expressions"
_MARK = re.compile(r"windloom_part_(\d+)_")
_PLAIN = re.compile(r"`[^`]+`|\w+(?:\.`\w+`)*|\w+\((?:[^()']|\([^()']*\))*\)|'[^'\\]*'")
#: Classes that Spark prints without something that matters, or not as SQL, by the name it prints.
_LOSSY = re.compile(
    r"\b(?:first|first_value|last|last_value|any_value|percentile|approx_count_distinct"
    r"|precisetimestampconversion|struct)\("
)
#: The same, by the pattern that Spark finds them by.
_REWRITTEN = ("RUNTIME_REPLACEABLE", "LAMBDA_FUNCTION")
_SIMPLE_PICKS = {"First": "first", "Last": "last", "AnyValue": "any_value"}


def _is_one(text: str) -> bool:
    """Return whether a text is one operand, whatever stands beside it."""
    if _PLAIN.fullmatch(text):
        return True
    depth, quoted = 0, False
    for place, letter in enumerate(text):
        quoted ^= letter in "'`"
        depth += 0 if quoted else (letter == "(") - (letter == ")")
        if depth == 0 and place + 1 < len(text):
            return False
    return text.startswith("(")


def elements(sequence: Java) -> list[Java]:
    """Return the elements of a Scala sequence."""
    return [sequence.apply(i) for i in range(sequence.size())]


def class_name(thing: Java) -> str:
    """Return the name of its class without the package."""
    return str(thing.getClass().getSimpleName()).rstrip("$")


class _Classes:
    """Classes of the JVM, each looked up once: every step of a look-up is a call."""

    def __init__(self, jvm: Any) -> None:
        catalyst = jvm.org.apache.spark.sql.catalyst
        self.map, self.list = jvm.java.util.HashMap, jvm.java.util.ArrayList
        self.python = jvm.org.apache.spark.api.python.PythonUtils
        self.condition = catalyst.plans.logical.Filter
        self.one_row = catalyst.plans.logical.OneRowRelation()
        self.folding = catalyst.optimizer.ConstantFolding
        self.types = jvm.org.apache.spark.sql.types.DataTypes
        self.attributes = catalyst.types.DataTypeUtils
        self.empty = self.python.toSeq(self.list())
        self._patterns = catalyst.trees.TreePattern
        self._found: dict[str, Java] = {}

    def pattern(self, name: str) -> Java:
        """Return the pattern by which Spark finds expressions of a kind."""
        if name not in self._found:
            self._found[name] = getattr(self._patterns, name)()
        return self._found[name]


@lru_cache(maxsize=1)
def _classes_of(jvm: Any) -> _Classes:
    return _Classes(jvm)


class Printer:
    """Prints expressions of one plan; `meanings` gives, by the id of a column, its text over the leaf or aggregates."""

    def __init__(self, spark: SparkSession) -> None:
        self._java = _classes_of(spark._jvm)
        self._gateway: Any = spark.sparkContext._gateway
        self.meanings: dict[int, str] = {}
        self._variables: dict[int, int] = {}  # of lambdas: their numbers by id

    def text(self, expression: Java, *, is_lambda: bool = False) -> str:
        """Return the SQL of a resolved expression; that of a lambda has variables."""
        if class_name(expression) == "AttributeReference" and not is_lambda:
            meaning = self.meanings.get(expression.exprId().id())
            return str(expression.sql()) if meaning is None else meaning
        parts: list[str] = []
        expression = self._folded(expression)
        if is_lambda or any(self.holds(expression, pattern) for pattern in _REWRITTEN):
            expression = self._rewritten(expression, parts)
        marked = self._marked(expression, parts)
        if _LOSSY.search(sql := str(marked.sql())):
            sql = str(self._rewritten(marked, parts).sql())
        while _MARK.search(sql):
            sql = _MARK.sub(lambda match: parts[int(match[1])], sql)
        return sql

    def _folded(self, expression: Java) -> Java:
        """Return the expression with its constants evaluated: `2L` for `CAST(2 AS BIGINT)`."""
        plan = self._java.condition(expression, self._java.one_row)
        try:
            return self._java.folding.apply(plan).condition()
        except Py4JError:  # a constant that cannot be evaluated yet; Spark reports it where it is used
            return expression

    def holds(self, expression: Java, pattern: str) -> bool:
        """Return whether an expression of this pattern is in it."""
        return bool(expression.containsPattern(self._java.pattern(pattern)))

    def _marked(self, expression: Java, parts: list[str]) -> Java:
        """Return the expression with identifiers in the place of columns that have a meaning."""
        replaced = self._java.map()
        for reference in elements(expression.references().toSeq()):
            meaning = self.meanings.get(reference.exprId().id())
            if meaning is not None:
                replaced.put(reference, self._part(reference, meaning, parts))
        if replaced.isEmpty():
            return expression
        return expression.transformUp(self._java.python.toScalaMap(replaced))

    def _part(self, column: Java, text: str, parts: list[str]) -> Java:
        """Return a column that is printed as an identifier, which stands for this text."""
        parts.append(text if _is_one(text) else f"({text})")
        return column.withName(f"windloom_part_{len(parts) - 1}_").withQualifier(self._java.empty)

    def _sequence(self, things: list[Java]) -> Java:
        listed = self._java.list()
        for thing in things:
            listed.add(thing)
        return self._java.python.toSeq(listed)

    def _column(self, kind: Java, text: str, parts: list[str]) -> Java:
        """Return a column of a type that is printed as an identifier, which stands for this text."""
        parts.append(text)
        field = self._java.types.createStructField(f"windloom_part_{len(parts) - 1}_", kind, True)
        return self._java.attributes.toAttribute(field)

    def _rewritten(self, expression: Java, parts: list[str]) -> Java:
        """Return the expression with identifiers in the place of what Spark does not print as it is meant."""
        printed = self._printed_here(expression)
        if printed is not None:
            return self._column(expression.dataType(), printed, parts)
        children = elements(expression.children())
        rewritten = [self._rewritten(child, parts) for child in children]
        if all(new is old for new, old in zip(rewritten, children, strict=True)):
            return expression
        return expression.withNewChildren(self._sequence(rewritten))

    def _printed_here(self, expression: Java) -> str | None:
        """Return the SQL of an expression that Spark does not print as it is meant; None for others."""
        match class_name(expression):
            case "AggregateExpression":
                return self._aggregate(expression)
            case "LambdaFunction":
                arguments = [self._variable(each) for each in elements(expression.arguments())]
                head = arguments[0] if len(arguments) == 1 else f"({', '.join(arguments)})"
                return f"{head} -> {self.text(expression.function(), is_lambda=True)}"
            case "NamedLambdaVariable":
                return self._variable(expression)
            case "Extract":
                return f"EXTRACT({expression.field().eval(None)} FROM {self.text(expression.source())})"
            case "PreciseTimestampConversion":  # of window_time()
                function = "unix_micros" if class_name(expression.dataType()) == "LongType" else "timestamp_micros"
                return f"{function}({self.text(expression.child())})"
            case "CreateNamedStruct":  # which Spark prints without the names of its fields, where it was struct()
                return f"named_struct({', '.join(self.text(each) for each in elements(expression.children()))})"
            case "Between":
                value, low, high = (self.text(each) for each in elements(expression.parameters()))
                return f"(({value}) BETWEEN ({low}) AND ({high}))"
        if is_instance_of(self._gateway, expression, f"{_CATALYST}.InheritAnalysisRules"):
            # What it will be replaced by is its child, and what it is printed with is not.
            arguments = [self.text(each) for each in elements(expression.parameters())]
            return f"{expression.prettyName()}({', '.join(arguments)})"
        return None

    def _variable(self, variable: Java) -> str:
        """Return a name for a variable that is the same whenever the program runs; Spark's are numbered by session."""
        number = self._variables.setdefault(int(variable.exprId().id()), len(self._variables) + 1)
        return f"x_{number}"

    def _aggregate(self, expression: Java) -> str | None:
        """Return the SQL of an aggregate with parameters that Spark leaves out, or adds; None for others."""
        function = expression.aggregateFunction()
        kind = class_name(function)
        if kind in _SIMPLE_PICKS:
            if not function.ignoreNulls():
                return None
            sql = f"{_SIMPLE_PICKS[kind]}({self.text(function.child())}) IGNORE NULLS"
        elif kind == "Percentile":
            argument, share, frequency = elements(function.children())
            if not share.foldable() or str(frequency.sql()) not in ("1", "1L"):
                return None
            sql = f"percentile({self.text(argument)}, {share.eval(None)})"
        elif kind == "HyperLogLogPlusPlus" and function.relativeSD() != 0.05:
            sql = f"approx_count_distinct({self.text(function.child())}, {function.relativeSD()})"
        else:
            return None
        condition = expression.filter()
        return sql if condition.isEmpty() else f"{sql} FILTER (WHERE {self.text(condition.get())})"


def place_of(expressions: Iterator[Java]) -> str | None:
    """Return the line of the user's program that made one of these expressions, if PySpark knows it."""
    for expression in expressions:
        context = expression.origin().pysparkErrorContext()
        if context.isDefined():
            return str(context.get()._2())
    return None
