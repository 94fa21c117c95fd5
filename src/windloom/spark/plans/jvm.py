"""Expressions and plans of Spark's JVM, as text; together with `classic.py`, all that knows its classes.

Spark prints resolved expressions as SQL, but by the names of columns, which may mean different columns at different
places of a plan. So every column is replaced by an identifier of our own before an expression is printed, and the
identifier by the meaning of the column afterwards. A few expressions lose something when Spark prints them; these, and
what contains them, are printed here.

Every call to the JVM takes its time, and a program may bring hundreds of DataFrames. So lists are read as one text, in
which a column is `name#id`, and what is asked of a whole plan is not asked of each of its expressions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from windloom.spark.plans.written import all_of

#: An object of the JVM.
Java = Any

_CATALYST = "org.apache.spark.sql.catalyst.expressions"
_MARK = re.compile(r"windloom_(part|column)_(\d+)_")
#: What stands behind the name of a column where Spark shows it: its id, a suffix for its type, and one for watermarks.
_ID = re.compile(r"#(\d+)L?(?:-T\d+ms)?$")
_SEPARATOR = "\x01"
_PLAIN = re.compile(r"`[^`]+`|\w+(?:\.`\w+`)*|\w+\((?:[^()']|\([^()']*\))*\)|'[^'\\]*'")
#: Classes that Spark prints without something that matters, or not as SQL, by the name it prints.
_LOSSY = re.compile(
    r"\b(?:first|first_value|last|last_value|any_value|percentile|approx_count_distinct"
    r"|mode|precisetimestampconversion|struct)\("
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


def texts(sequence: Java) -> list[str]:
    """Return what Spark shows of each expression of a sequence, in one call."""
    shown = str(sequence.mkString(_SEPARATOR))
    return shown.split(_SEPARATOR) if shown else []


def column_of(text: str) -> tuple[str, int]:
    """Return the name and the id of a column that Spark shows.

    >>> column_of("a#b#17L")
    ('a#b', 17)
    """
    found = _ID.search(text)
    assert found is not None, text
    return text[: found.start()], int(found[1])


def columns_read(expression: Java) -> list[int]:
    """Return the ids of the columns that an expression reads."""
    return [column_of(text)[1] for text in texts(expression.references().toSeq())]


def kind_of(thing: Java) -> str:
    """Return the name of the class of an expression or of a node of a plan."""
    return str(thing.nodeName())


def class_name(thing: Java) -> str:
    """Return the name of the class of anything else, without the package."""
    return str(thing.getClass().getSimpleName()).rstrip("$")


class JavaNode:
    """A node of a resolved plan, which asks Spark once for what it is and for its columns."""

    def __init__(self, plan: Java) -> None:
        self.plan = plan

    @cached_property
    def kind(self) -> str:
        return kind_of(self.plan)

    @cached_property
    def shown(self) -> list[str]:
        """What Spark shows of its columns."""
        return texts(self.plan.output())

    @cached_property
    def made(self) -> list[str]:
        """What Spark shows of the expressions of a projection: the same as of the column, if it only hands it on."""
        return texts(self.plan.projectList())

    @cached_property
    def columns(self) -> list[tuple[str, int]]:
        """The names and ids of its columns."""
        return [column_of(text) for text in self.shown]

    @cached_property
    def child(self) -> JavaNode:
        return JavaNode(self.plan.child())


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
        self.project = catalyst.plans.logical.Project
        self.empty = self.python.toSeq(self.list())
        self._patterns = catalyst.trees.TreePattern
        self._found: dict[tuple[str, ...], Java] = {}

    def patterns(self, *names: str) -> Java:
        """Return the patterns by which Spark finds expressions of some kinds."""
        if names not in self._found:
            listed = self.list()
            for name in names:
                listed.add(getattr(self._patterns, name)())
            self._found[names] = self.python.toSeq(listed)
        return self._found[names]


@lru_cache(maxsize=1)
def _classes_of(jvm: Any) -> _Classes:
    return _Classes(jvm)


class JavaPrinter:
    """Prints expressions of one plan; `meanings` gives, by the id of a column, its text over the leaf or aggregates."""

    def __init__(self, spark: SparkSession, plan: Java) -> None:
        self._java = _classes_of(spark._jvm)
        self._gateway: Any = spark.sparkContext._gateway
        self.meanings: dict[int, str] = {}
        self.only: str | None = None  # the condition of the tuples that aggregates take
        self._names: dict[int, str] = {}
        self._variables: dict[int, int] = {}  # of lambdas: their numbers by id
        self._is_rewritten = self.holds(plan, *_REWRITTEN)
        self._marks = self._java.map()  # columns that have a meaning, and how they are printed
        self._marks_now: Java = None

    def define(self, name: str, column: int, meaning: str) -> None:
        """Take the meaning of a column from now on."""
        self.meanings[column] = meaning
        self._names[column] = name

    def meaning_of(self, text: str) -> str | None:
        """Return the meaning of a column as Spark shows it; None for other expressions, and for columns without one."""
        if (found := _ID.search(text)) is None or self._names.get(int(found[1])) != text[: found.start()]:
            return None
        return self.meanings[int(found[1])]

    def text(self, expression: Java, *, is_lambda: bool = False) -> str:
        """Return the SQL of a resolved expression; that of a lambda has variables."""
        if not is_lambda and kind_of(expression) == "AttributeReference":
            meaning = self.meanings.get(column_of(str(expression.toString()))[1])
            return str(expression.sql()) if meaning is None else meaning
        parts: list[str] = []
        alone = self._folded(self._java.condition(expression, self._java.one_row))
        if is_lambda or self.only or (self._is_rewritten and self.holds(alone, *_REWRITTEN)):
            alone = self._java.condition(self._rewritten(alone.condition(), parts), self._java.one_row)
        return self._printed(self._marked(alone).condition(), parts)

    def texts(self, columns: Java, places: list[int]) -> list[str]:
        """Return the SQL of what some columns of a list are made from, in as few calls as possible."""
        if not places or self.only or self._is_rewritten:
            return [self.text(columns.apply(place).child()) for place in places]
        together = self._marked(self._folded(self._java.project(columns, self._java.one_row))).projectList()
        return [self._printed(together.apply(place).child(), []) for place in places]

    def _printed(self, marked: Java, parts: list[str]) -> str:
        """Return the SQL of an expression whose columns have been marked; `parts` has what is printed here."""
        if _LOSSY.search(sql := str(marked.sql())):
            sql = str(self._rewritten(marked, parts).sql())
        return self._unmarked(sql, parts)

    def _unmarked(self, sql: str, parts: list[str]) -> str:
        """Return SQL with what its identifiers stand for."""

        def meant(mark: re.Match[str]) -> str:
            text = parts[int(mark[2])] if mark[1] == "part" else self.meanings[int(mark[2])]
            return text if mark[1] == "part" or _is_one(text) else f"({text})"

        while _MARK.search(sql):
            sql = _MARK.sub(meant, sql)
        return sql

    def _folded(self, node: Java) -> Java:
        """Return a node of a plan with its constants evaluated: `2L` for `CAST(2 AS BIGINT)`."""
        try:
            return self._java.folding.apply(node)
        except Py4JError:  # a constant that cannot be evaluated yet; Spark reports it where it is used
            return node

    def holds(self, thing: Java, *patterns: str) -> bool:
        """Return whether an expression of one of these patterns is in an expression or a plan."""
        return bool(thing.containsAnyPattern(self._java.patterns(*patterns)))

    def _marked(self, node: Java) -> Java:
        """Return a node of a plan with identifiers in the place of columns that have a meaning."""
        references = node.references().toSeq()
        for place, text in enumerate(texts(references)):
            column = column_of(text)[1]
            if column in self.meanings and not self._marks.containsKey(reference := references.apply(place)):
                mark = reference.withName(f"windloom_column_{column}_").withQualifier(self._java.empty)
                self._marks.put(reference, mark)
                self._marks_now = None
        if self._marks_now is None:
            self._marks_now = self._java.python.toScalaMap(self._marks)
        return node.transformExpressions(self._marks_now)

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
        match kind_of(expression):
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
        kind = kind_of(function)
        sql = None
        if kind in _SIMPLE_PICKS and function.ignoreNulls():
            sql = f"{_SIMPLE_PICKS[kind]}({self.text(function.child())}, true)"
        elif kind == "Percentile":
            argument, share, frequency = elements(function.children())
            if share.foldable() and str(frequency.sql()) in ("1", "1L"):
                sql = f"percentile({self.text(argument)}, {share.eval(None)})"
        elif kind == "Mode" and function.reverseOpt().isDefined():
            # Of equally frequent values, the smallest or the largest: Spark shows the order the other way round.
            argument, smallest = self.text(function.child()), bool(function.reverseOpt().get())
            sql = f"mode({argument}, true)" if smallest else f"mode() WITHIN GROUP (ORDER BY {argument} DESC)"
        elif kind == "HyperLogLogPlusPlus" and function.relativeSD() != 0.05:
            sql = f"approx_count_distinct({self.text(function.child())}, {function.relativeSD()})"
        if sql is None and self.only:
            sql = self._printed_here(function) or self._function(function, expression.isDistinct())
        if sql is None:
            return None
        conditions = [self.only] if self.only else []
        if (condition := expression.filter()).isDefined():
            conditions.append(self.text(condition.get()))
        return f"{sql} FILTER (WHERE {all_of(conditions)})" if conditions else sql

    def _function(self, function: Java, is_distinct: bool) -> str:
        """Return the SQL of an aggregate function."""
        parts: list[str] = []
        children = [self._column(each.dataType(), self.text(each), parts) for each in elements(function.children())]
        return self._unmarked(str(function.withNewChildren(self._sequence(children)).sql(is_distinct)), parts)


def shown(thing: Java, length: int = 120) -> str:
    """Return what Spark shows of an expression or a node, in one line that is not too long."""
    text = " ".join(str(thing.simpleString(25)).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def place_of(expressions: Iterator[Java]) -> str | None:
    """Return the line of the user's program that made one of these expressions, if PySpark knows it."""
    for expression in expressions:
        context = expression.origin().pysparkErrorContext()
        if context.isDefined():
            return str(context.get()._2())
    return None


def nodes_below(node: Java) -> Iterator[Java]:
    """Return a node and all nodes below it, the node first."""
    yield node
    for child in elements(node.children()):
        yield from nodes_below(child)


def label_of(node: Java) -> str:
    """Return a name for a leaf: that of its table, or of the folder or file that it reads."""
    kind = kind_of(node)
    if kind == "LogicalRelation":
        if node.catalogTable().isDefined():
            return str(node.catalogTable().get().identifier().table())
        if class_name(node.relation()) == "HadoopFsRelation":
            roots = node.relation().location().rootPaths()
            return str(roots.apply(0).getName()) if roots.size() else ""
    if kind == "StreamingRelation":
        path = node.dataSource().options().get("path")
        return str(path.get()).rstrip("/").rpartition("/")[2] if path.isDefined() else str(node.sourceName())
    if kind in ("DataSourceV2Relation", "StreamingRelationV2"):
        return str(node.name() if kind == "DataSourceV2Relation" else node.sourceName())
    return ""
