"""Reads the plan of a DataFrame of a Spark Connect session, which the client has not resolved: names are the user's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from windloom.errors import QueryError, WindloomError
from windloom.language.sql.statement import table_read
from windloom.language.sql.tokens import SourceText, spelled
from windloom.model.time import parse_duration
from windloom.spark.plans.connect_columns import ColumnPrinter, UnreadableColumnError
from windloom.spark.plans.written import (
    INSTEAD,
    WORKS_TODAY,
    RefusedPlanError,
    WrittenQuery,
    WrittenText,
    WrittenWindow,
    unique_names,
)

#: A node of the client's plan.
Node = Any

_ABOVE = ("Project", "Filter", "Sort", "WithColumns", "WithColumnsRenamed", "Drop", "SubqueryAlias", "ToDF")
_BELOW = (*_ABOVE, "WithWatermark")


@dataclass(frozen=True)
class ConnectLeaf:
    """A part of a client's plan."""

    frame: DataFrame
    label: str

    def reads_same(self, frame: DataFrame) -> bool:
        return self.frame.columns == frame.columns and self.frame.sameSemantics(frame)


def read_connect(frame: DataFrame, *, deep: bool = True) -> WrittenQuery | WrittenText:
    """Return the query that a DataFrame stands for; without `deep`, Spark computes all below the aggregation."""
    plan: Any = frame._plan
    return _read_text(frame, plan) if type(plan).__name__ == "CachedRelation" else _ConnectReader(frame, deep).read()


def _read_text(frame: DataFrame, plan: Node) -> WrittenText:
    """Return the query of spark.sql(text), whose text the client still has."""
    relation = plan._plan
    if relation.WhichOneof("rel_type") != "sql" or relation.sql.pos_arguments or relation.sql.named_arguments:
        raise _unread_text("the text has parameters, or names of DataFrames")
    source = SourceText(relation.sql.query, "spark.sql()")
    try:
        read = table_read(source)
    except QueryError as error:
        raise RefusedPlanError(error.message, error.detail, error.hint) from None
    leaf = ConnectLeaf(frame.sparkSession.table(read.table), read.table)
    time = next((name for name in leaf.frame.columns if name.lower() == read.time.lower()), None)
    if time is None:
        raise _unread_text(f"'{read.time}' is no column of '{read.table}'")
    return WrittenText(leaf, WrittenWindow("window", spelled(time), time, ()), read, frame.schema, frame.isStreaming)


def _unread_text(why: str) -> RefusedPlanError:
    return RefusedPlanError(
        "this DataFrame of spark.sql() cannot be read in a remote session",
        why,
        "give the text itself, with all it needs: loom.query(name, text), with loom.stream for its table",
    )


class _ConnectReader:
    def __init__(self, frame: DataFrame, deep: bool) -> None:
        self._frame: Any = frame
        self._deep = deep
        self._where: list[str] = []
        self._having: list[str] = []
        self._order: list[str] = []
        self._delay: int | None = None
        self._names: list[tuple[str, str]] = []  # the columns of a node with their SQL, in order
        self._print = ColumnPrinter({})

    def read(self) -> WrittenQuery:
        above, aggregate = self._find_aggregate(self._frame._plan)
        leaf = self._read_below(aggregate._child)
        try:
            groups = self._read_aggregate(aggregate)
            for node in reversed(above):
                self._read_node(node, self._having)
        except UnreadableColumnError as unreadable:
            raise RefusedPlanError("a column of the DataFrame cannot be read", str(unreadable)) from None
        window = self._print.window
        if window is None:
            raise self._no_window(aggregate)
        names = unique_names(list(self._frame.columns))
        columns = tuple((sql, name) for (_, sql), name in zip(self._names, names, strict=True))
        return WrittenQuery(
            leaf,
            window,
            columns,
            self._frame.schema,
            tuple(self._where),
            tuple(group for group in groups if group != window.function),
            tuple(self._having),
            tuple(self._order),
            self._delay,
            self._frame.isStreaming,
        )

    def _find_aggregate(self, node: Node) -> tuple[list[Node], Node]:
        above: list[Node] = []
        while (kind := type(node).__name__) != "Aggregate":
            if kind == "CachedRelation":
                raise _unread_text("its server reads the text, and the plan goes on above it")
            if kind not in _ABOVE or node._child is None:
                if _aggregates(node):
                    message = f"the plan node '{kind}' cannot stand above a window"
                    raise RefusedPlanError(
                        message, "the plan has it over an aggregation", INSTEAD.get(kind, WORKS_TODAY)
                    )
                raise RefusedPlanError(
                    "the DataFrame has no window",
                    f"its plan ends with {kind}",
                    "group it: df.groupBy(window('ts', '1 hour', '1 minute'), …).agg(…)",
                )
            above.append(node)
            node = node._child
        if node._group_type != "groupby":
            raise RefusedPlanError(f"{node._group_type}() is not supported", "a query has one grouping")
        return above, node

    def _no_window(self, aggregate: Node) -> RefusedPlanError:
        return RefusedPlanError(
            "the DataFrame has no window",
            f"it is grouped by {', '.join(map(str, aggregate._grouping_cols)) or 'nothing'}",
            "group by a window as well: df.groupBy(window('ts', '1 hour', '1 minute'), …).agg(…)",
        )

    def _read_aggregate(self, aggregate: Node) -> list[str]:
        groups = [self._print.text(each._expr) for each in aggregate._grouping_cols]
        answers = [self._print.text(each._expr) for each in aggregate._aggregate_cols]
        names = self._over(aggregate).columns
        self._take(list(zip(names, [*groups, *answers], strict=True)))
        return groups

    def _read_below(self, node: Node) -> ConnectLeaf:
        below: list[Node] = []
        label = ""
        while self._deep and type(node).__name__ in _BELOW and node._child is not None:
            if type(node).__name__ == "SubqueryAlias":
                label = str(node._alias)
            below.append(node)
            node = node._child
        while True:
            leaf = self._over(node)
            names = unique_names(leaf.columns, ("window", "session_window", "window_start", "window_end"))
            if list(names) != leaf.columns:
                leaf = leaf.toDF(*names)
            self._where, self._delay = [], None
            self._print = ColumnPrinter({name.lower(): spelled(name) for name in names})
            self._take([(name, spelled(name)) for name in names])
            unread = next((i for i in reversed(range(len(below))) if not self._can_read(below[i])), None)
            if unread is None:
                return ConnectLeaf(leaf, label or _label(node))
            node = below[unread]  # Spark computes this, and what is below it
            del below[unread:]

    def _can_read(self, node: Node) -> bool:
        try:
            self._read_node(node, self._where)
        except UnreadableColumnError:
            return False
        return True

    def _read_node(self, node: Node, conditions: list[str]) -> None:
        match type(node).__name__:
            case "Filter":
                text = self._print.text(node.filter._expr)
                window = self._print.window
                is_over_window = window is not None and conditions is self._where and _names(window.function, text)
                (self._having if is_over_window else conditions).append(text)
            case "Sort":
                self._order = (
                    [self._print.text(each._expr) for each in node.columns] if conditions is self._having else []
                )
            case "Project":
                self._take(self._projected(node))
            case "WithColumns":
                made = [self._print.text(each._expr) for each in node._columns]
                columns = dict(self._names)
                for name, sql in zip(node._columnNames, made, strict=True):
                    same = next((each for each in columns if each.lower() == name.lower()), name)
                    columns[same] = sql
                self._take(list(columns.items()))
            case "WithColumnsRenamed":
                self._take([(node._colsMap.get(name, name), sql) for name, sql in self._names])
            case "Drop":
                gone = {
                    (each if isinstance(each, str) else each._expr._unparsed_identifier).lower()
                    for each in node._columns
                }
                self._take([(name, sql) for name, sql in self._names if name.lower() not in gone])
            case "ToDF":
                self._take(list(zip(node._cols, [sql for _, sql in self._names], strict=True)))
            case "WithWatermark":
                try:
                    self._delay = parse_duration(node._delay_threshold)
                except WindloomError as error:
                    raise RefusedPlanError(error.message, error.detail, error.hint) from None

    def _projected(self, node: Node) -> list[tuple[str, str]]:
        columns: list[tuple[str, str]] = []
        unnamed = False
        for each in node._columns:
            expression = each._expr
            kind = type(expression).__name__
            if kind == "UnresolvedStar":
                columns += self._names
                continue
            sql = self._print.text(expression)
            if kind == "ColumnAlias":
                columns.append((expression._alias[0], sql))
            else:
                unnamed = True
                columns.append(("", sql))
        if unnamed:
            columns = [(name, sql) for name, (_, sql) in zip(self._over(node).columns, columns, strict=True)]
        return columns

    def _take(self, columns: list[tuple[str, str]]) -> None:
        """Continue with these columns."""
        self._names = columns
        self._print.names = {name.lower(): sql for name, sql in reversed(columns)}

    def _over(self, node: Node) -> Any:
        """Return a part of the plan as a DataFrame."""
        from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame  # needs packages that classic does not

        return ConnectFrame(node, self._frame.sparkSession)


def _aggregates(node: Node) -> bool:
    """Return whether a node, or one below it, aggregates."""
    inputs = [each for each in vars(node).values() if hasattr(each, "_child")]
    return type(node).__name__ == "Aggregate" or any(map(_aggregates, inputs))


def _names(function: str, text: str) -> bool:
    """Return whether a text reads the window."""
    return re.search(rf"(?<![\w`]){function}(?![\w`])", text) is not None


def _label(node: Node) -> str:
    """Return a name for a leaf: that of its table, or of the folder or file that it reads."""
    if type(node).__name__ == "DataSource" and node._paths:
        return str(node._paths[0]).rstrip("/").rpartition("/")[2]
    if type(node).__name__ == "Read":
        return str(node.table_name).rpartition(".")[2]
    return ""
