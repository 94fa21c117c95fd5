"""Reads the plan of a DataFrame of a classic session, as Spark's analyzer has resolved it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from windloom.language.sql.tokens import spelled
from windloom.spark.plans.joined import (
    AnswerJoin,
    AnswerSide,
    check_sides,
    kept,
    keys_of,
    optional_side,
    refused,
    sides_of,
)
from windloom.spark.plans.jvm import (
    Java,
    JavaNode,
    JavaPrinter,
    column_of,
    columns_read,
    elements,
    kind_of,
    label_of,
    nodes_below,
    place_of,
    shown,
    texts,
)
from windloom.spark.plans.windowing import Windowing, has_open_windows, ticks_of, windowing_of
from windloom.spark.plans.written import (
    INSTEAD,
    WORKS_TODAY,
    RefusedPlanError,
    WrittenQuery,
    WrittenWindow,
    all_of,
    unique_names,
)

#: Nodes that change neither rows nor columns.
_TRANSPARENT = (
    *("SubqueryAlias", "View", "CTERelationRef", "ResolvedHint"),
    *("Repartition", "RepartitionByExpression", "RebalancePartitions"),
)
#: Nodes that become a part of the query where they stand below a window.
_READABLE = ("Project", "Filter")
#: Names that mean the window in a query, and so cannot name a column of its stream.
_WINDOW_NAMES = ("window", "session_window", "window_start", "window_end")
#: Expressions that only Spark can evaluate: below the window it does so before tuples are read, above it never does.
_BY_SPARK = {
    "PYTHON_UDF": "a Python function",
    "SCALA_UDF": "a function of the JVM",
    "PLAN_EXPRESSION": "a subquery",
    "WINDOW_EXPRESSION": "a window function (OVER)",
}
#: How long Spark takes a month to be, in the delay of a watermark.
_DAYS_OF_MONTHS = 31
#: What to do instead of nodes that cannot stand between a window and its aggregation.
_EARLIER = {
    "Join": "join first, and group by window() above; or pair the tuples of two windows in a text: "
    "FROM a [TUMBLE 1 hour] JOIN b [TUMBLE 1 hour] ON a.x = b.x",
    **dict.fromkeys(("Deduplicate", "Distinct"), "count distinct values in the window: agg(count_distinct(…))"),
}


@dataclass(frozen=True)
class _Source:
    """What a plan reads, without names for it, and without a watermark."""

    plan: Java

    @staticmethod
    def of(frame: DataFrame) -> _Source:
        """Return that of a DataFrame, which is asked for as often as there are queries, and does not change."""
        if frame not in _SOURCES:
            node = JavaNode(_resolved(frame))
            while node.kind in (*_TRANSPARENT, "EventTimeWatermark"):
                node = node.child
            _SOURCES[frame] = _Source(node.plan)
        return _SOURCES[frame]

    @cached_property
    def digest(self) -> int:
        return int(self.plan.semanticHash())

    @cached_property
    def is_readable(self) -> bool:
        return kind_of(self.plan) in _READABLE

    def gives_same(self, other: _Source) -> bool:
        """Return whether both have the same rows, as Spark decides it for what is cached."""
        return self.digest == other.digest and bool(self.plan.sameResult(other.plan))


_SOURCES: WeakKeyDictionary[DataFrame, _Source] = WeakKeyDictionary()


@dataclass(frozen=True)
class ClassicLeaf:
    """A part of a resolved plan."""

    spark: SparkSession
    source: _Source
    names: tuple[str, ...]
    alias: str

    @property
    def label(self) -> str:
        return self.alias or label_of(self.source.plan)

    @property
    def frame(self) -> DataFrame:
        jvm: Any = self.spark._jvm
        made = ClassicFrame(
            jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.spark._jsparkSession, self.source.plan), self.spark
        )
        return made if tuple(made.columns) == self.names else made.toDF(*self.names)

    def reads_same(self, frame: DataFrame) -> bool:
        return self.names == tuple(frame.columns) and self.source.gives_same(_Source.of(frame))


def read_classic(frame: DataFrame, registered: Iterable[DataFrame] = (), *, deep: bool = True) -> WrittenQuery:
    """Return the query that a DataFrame stands for.

    What it reads of `registered` streams is read as it is. Without `deep`, Spark computes all that is below the window.
    """
    return _ClassicReader(frame, registered, deep).read()


def _resolved(frame: DataFrame) -> Java:
    return frame._jdf.queryExecution().analyzed()


class _ClassicReader:
    def __init__(self, frame: DataFrame, registered: Iterable[DataFrame], deep: bool) -> None:
        self._frame = frame
        self._root = JavaNode(_resolved(frame))
        self._registered = [source for source in map(_Source.of, registered) if source.is_readable]
        self._spark = frame.sparkSession
        self._deep = deep
        self._print = JavaPrinter(self._spark, self._root.plan)
        # Whether only values that can be repeated are in the plan, and nothing that only Spark can evaluate.
        self._is_plain = self._root.plan.deterministic() and not self._print.holds(self._root.plan, *_BY_SPARK)
        self._window: WrittenWindow | None = None
        self._windowed: set[int] = set()  # the columns that depend on the window alone, by id
        self._where: list[str] = []
        self._having: list[str] = []
        self._order: list[str] = []
        self._delay: tuple[str, int] | None = None  # the time, and ticks
        self._common: dict[int, JavaNode] = {}  # what WITH defines, by id
        self._leaf_columns: dict[str, str] = {}  # by their SQL
        self._leaves: list[ClassicLeaf] = []  # of the sides of a join
        self._is_filtered = False  # whether sides of a join choose different tuples

    def read(self) -> WrittenQuery:
        root = self._root
        if root.kind == "WithCTE":
            self._common = {int(each.id()): JavaNode(each).child for each in elements(root.plan.cteDefs())}
            root = JavaNode(root.plan.plan())
        tree = self._read_tree(root)
        first, *others = sides_of(tree)
        leaf, *leaves = self._leaves
        check_sides(tree, [each.names == leaf.names and each.source.gives_same(leaf.source) for each in leaves])
        # Sides that choose the same tuples need no FILTER.
        self._is_filtered = any(side.where != first.where for side in others)
        groups, having = self._answer(tree)
        wheres = list(dict.fromkeys(all_of(side.where) if side.where else "" for side in (first, *others)))
        where = first.where if not self._is_filtered else () if "" in wheres else (_any_of(wheres),)
        schema = self._frame.schema
        columns = [self._print.meanings[column] for _, column in root.columns]
        return WrittenQuery(
            leaf,
            first.window,
            tuple(zip(columns, unique_names(schema.names), strict=True)),
            schema,
            where,
            tuple(groups),
            tuple(dict.fromkeys(having)),
            tuple(self._order),
            None if first.delay is None else first.delay[1],
            self._frame.isStreaming,
        )

    def _read_tree(self, root: JavaNode) -> AnswerSide | AnswerJoin:
        """Read what is below the aggregations of a plan: one, or several whose answers are joined."""
        above, node = self._find_aggregate(root)
        if node.kind == "Join":
            left, right = (self._read_tree(JavaNode(each)) for each in elements(node.plan.children()))
            return AnswerJoin(above, node, left, right)
        self._where, self._having, self._window, self._delay = [], [], None, None
        self._leaves.append(self._read_below(self._child(node)))
        if self._window is None:
            raise self._no_window(node)
        return AnswerSide(above, node, self._window, self._delay, tuple(self._where), tuple(self._having))

    def _answer(self, tree: AnswerSide | AnswerJoin) -> tuple[list[str], list[str]]:
        """Read the aggregations and what is above them; return the groups, and the conditions that rows meet."""
        if isinstance(tree, AnswerSide):
            only = all_of(tree.where) if self._is_filtered and tree.where else None
            self._print.only = only
            groups = self._read_aggregate(tree.aggregate)
            self._print.only = None
            conditions = [*([f"(count(1) FILTER (WHERE {only}) > 0L)"] if only else []), *tree.having]
        else:
            groups, left = self._answer(tree.left)
            others, right = self._answer(tree.right)
            if set(groups) != set(others):
                raise refused(tree, "its sides have different groups")
            keys = keys_of(tree, self._print.meanings, groups)
            conditions = kept(tree.kind, left, right, keys)
            optional = optional_side(tree)
            matching = [*(right if optional is tree.right else left), *keys]
            for name, column in [] if optional is None or not matching else optional.top.columns:
                value = self._print.meanings[column]
                self._print.define(name, column, f"CASE WHEN {all_of(matching)} THEN {value} END")
        self._having, self._order = conditions, []
        for node in reversed(tree.above):
            self._read_above(node)
        return groups, self._having

    # Above the window -------------------------------------------------------------------------------------------

    def _find_aggregate(self, node: JavaNode) -> tuple[list[JavaNode], JavaNode]:
        """Return the nodes above the aggregation, from the top, and the aggregation, or a join of such."""
        above: list[JavaNode] = []
        while (kind := node.kind) != "Aggregate" and not (kind == "Join" and _joins_answers(node)):
            if kind not in (*_READABLE, "Sort", *_TRANSPARENT):
                below = [JavaNode(each) for each in nodes_below(node.plan)]
                if not any(each.kind == "Aggregate" or windowing_of(each) is not None for each in below):
                    raise RefusedPlanError(
                        "the DataFrame has no window",
                        f"its plan is a {kind} without an aggregation",
                        "group it: df.groupBy(window('ts', '1 hour', '1 minute'), …).agg(…)",
                    )
                raise RefusedPlanError(
                    f"the plan node '{kind}' cannot stand above a window",
                    shown(node.plan),
                    INSTEAD.get(kind, WORKS_TODAY),
                    place_of(_expressions(node)),
                )
            above.append(node)
            node = self._child(node)
        return above, node

    def _child(self, node: JavaNode) -> JavaNode:
        """Return what a node with one input reads; for a name that WITH defines, its definition."""
        return self._common[int(node.plan.cteId())] if node.kind == "CTERelationRef" else node.child

    def _read_above(self, node: JavaNode) -> None:
        for expression in () if self._is_plain else elements(node.plan.expressions()):
            for pattern, what in _BY_SPARK.items():
                if self._print.holds(expression, pattern):
                    raise RefusedPlanError(
                        f"{what} above the window is not supported",
                        f"the plan has {shown(expression)} over aggregates",
                        "apply it to the rows of the answer: loom.run()[name].select(…)",
                        place_of(iter([expression])),
                    )
        if node.kind in _TRANSPARENT:
            self._rename(node)
        elif node.kind == "Project":
            self._define(node, node.plan.projectList())
        elif node.kind == "Filter":
            self._having.append(self._print.text(node.plan.condition()))
        elif node.kind == "Sort":
            self._order = [self._key(each) for each in elements(node.plan.order())]

    def _key(self, order: Java) -> str:
        words = str(order.sql())[len(str(order.child().sql())) :]
        return f"{self._print.text(order.child())}{words}"

    def _read_aggregate(self, aggregate: JavaNode) -> list[str]:
        """Read the aggregation, and return its grouping expressions other than the window."""
        groups, is_windowed = [], False
        grouping = aggregate.plan.groupingExpressions()
        for place, each in enumerate(texts(grouping)):
            text = self._print.meaning_of(each)
            if text is None:
                expression = grouping.apply(place)
                if expression.foldable():
                    continue  # a constant groups nothing
                text = self._print.text(expression)
            assert self._window is not None
            if text == self._window.function:
                is_windowed = True
            else:
                groups.append(text)
        if not is_windowed:
            raise self._no_window(aggregate)
        answers = aggregate.plan.aggregateExpressions()
        for expression in () if self._is_plain else elements(answers):
            self._refuse_unreadable(expression)
        self._define(aggregate, answers)
        return groups

    def _refuse_unreadable(self, expression: Java) -> None:
        for pattern, what in _BY_SPARK.items():
            if self._print.holds(expression, pattern):
                raise RefusedPlanError(
                    f"{what} inside an aggregation is not supported",
                    f"the plan has {shown(expression)}",
                    "compute it in a column before the window: df.withColumn(…).groupBy(window(…))",
                    place_of(iter([expression])),
                )
        if not expression.deterministic():
            raise RefusedPlanError(
                f"'{shown(expression)}' gives another value every time it is evaluated",
                "an answer must not depend on when or how often a tuple is read",
                "write such values to the data first",
                place_of(iter([expression])),
            )

    def _no_window(self, aggregate: JavaNode) -> RefusedPlanError:
        if any(windowing_of(JavaNode(each)) is not None for each in nodes_below(aggregate.plan)):
            return RefusedPlanError(
                "an aggregation over the answers of a window is not supported",
                f"the plan has {shown(aggregate.plan)} above it",
                "register the inner DataFrame, and aggregate the rows of its answer: loom.run()[name].groupBy(…)",
                place_of(_expressions(aggregate)),
            )
        return RefusedPlanError(
            "the DataFrame has no window",
            f"its aggregation is {shown(aggregate.plan)}",
            "group by a window as well: df.groupBy(window('ts', '1 hour', '1 minute'), …).agg(…)",
            place_of(_expressions(aggregate)),
        )

    # Below the window -------------------------------------------------------------------------------------------

    def _read_below(self, node: JavaNode) -> ClassicLeaf:
        """Read what is below the aggregation, and return what Spark computes of it."""
        chain: list[JavaNode] = []  # between the aggregation and the node that makes the windows
        while (windowing := windowing_of(node)) is None:
            chain.append(node)
            if node.kind == "Expand":
                raise RefusedPlanError(
                    "rollup, cube and grouping sets are not supported",
                    "the plan groups by several lists of columns",
                    "register a DataFrame for each of them: groupBy(window(…), …)",
                    place_of(_expressions(node)),
                )
            if node.kind not in (*_READABLE, *_TRANSPARENT):
                if not has_open_windows(node):
                    return self._leaf(node)  # no window: the aggregation is refused
                raise RefusedPlanError(
                    f"the plan node '{node.kind}' cannot stand between a window and its aggregation",
                    shown(node.plan),
                    _EARLIER.get(node.kind, "do that first, and call window() where you group: groupBy(window(…), …)"),
                    place_of(_expressions(node)),
                )
            node = self._child(node)
        below: list[JavaNode] = []  # what becomes a part of the query
        node, alias = self._child(node), ""
        while True:
            if windowing_of(node) is not None:
                raise RefusedPlanError(
                    "the DataFrame has two windows",
                    f"one is made by {shown(node.plan)}",
                    "register a DataFrame for each of them, and join the answers",
                    place_of(_expressions(node)),
                )
            if node.kind == "SubqueryAlias" and not str(node.plan.alias()).startswith("__"):
                alias = str(node.plan.alias())
            if not (
                node.kind == "EventTimeWatermark"
                or node.kind in _TRANSPARENT
                or (self._deep and self._is_readable(node))
            ):
                break
            below.append(node)
            node = self._child(node)
        leaf = self._leaf(node, alias)
        for each in reversed(below):
            self._read_node(each)
        self._read_window(windowing, below)
        chain.reverse()
        is_filtered = windowing.node.kind == "Expand" or windowing.function == "session_window"
        if chain and chain[0].kind == "Filter" and is_filtered:
            chain = chain[1:]  # Spark's own filter: of NULL times, and of windows that do not contain the tuple
        for each in chain:
            self._read_node(each)
        return leaf

    def _is_readable(self, node: JavaNode) -> bool:
        """Return whether a node becomes a part of the query; otherwise Spark computes it."""
        if node.kind not in _READABLE or self._is_cached(node):
            return False
        if self._registered and any(map(_Source(node.plan).gives_same, self._registered)):
            return False
        return self._is_plain or all(
            expression.deterministic() and not self._print.holds(expression, *_BY_SPARK)
            for expression in elements(node.plan.expressions())
        )

    def _is_cached(self, node: JavaNode) -> bool:
        session = self._spark._jsparkSession
        cached = session.sharedState().cacheManager()
        return not cached.isEmpty() and bool(cached.lookupCachedData(session, node.plan).isDefined())

    def _leaf(self, node: JavaNode, alias: str = "") -> ClassicLeaf:
        names = unique_names([name for name, _ in node.columns], _WINDOW_NAMES)
        for (own, column), name in zip(node.columns, names, strict=True):
            self._print.define(own, column, spelled(name))
        self._leaf_columns = {spelled(name): name for name in names}
        return ClassicLeaf(self._spark, _Source(node.plan), names, alias)

    def _read_node(self, node: JavaNode) -> None:
        match node.kind:
            case "Project":
                self._define(node, node.plan.projectList())
            case "Filter":
                self._read_filter(node.plan.condition())
            case "EventTimeWatermark":
                _, column = column_of(str(node.plan.eventTime().toString()))
                self._delay = self._print.meanings[column], ticks_of(node.plan.delay(), _DAYS_OF_MONTHS)
            case _:
                self._rename(node)

    def _read_filter(self, condition: Java) -> None:
        text = self._print.text(condition)
        read = set(columns_read(condition)) if self._windowed else set()
        if not read & self._windowed:
            self._where.append(text)
        elif read <= self._windowed:
            self._having.append(text)  # a condition on the window alone holds for all tuples of a window or for none
        else:
            raise RefusedPlanError(
                "a condition compares the window with columns",
                f"the plan filters by {shown(condition)} before it aggregates",
                "compare the time column instead, or filter the answer by its window",
                place_of(iter([condition])),
            )

    def _rename(self, node: JavaNode) -> None:
        if node.kind == "SubqueryAlias":
            return  # it gives only a qualifier to its columns
        for (_, old), (name, new) in zip(self._child(node).columns, node.columns, strict=True):
            self._print.define(name, new, self._print.meanings[old])
            if old in self._windowed:
                self._windowed.add(new)

    def _define(self, node: JavaNode, expressions: Java) -> None:
        """Take the meanings of the columns that a node makes."""
        given = node.made if node.kind == "Project" else texts(expressions)
        made = [place for place, text in enumerate(given) if text != node.shown[place]]
        for place, text in zip(made, self._print.texts(expressions, made), strict=True):
            name, column = node.columns[place]
            self._print.define(name, column, text)
            if not self._windowed:
                continue
            read = columns_read(expressions.apply(place).child())
            if read and self._windowed.issuperset(read):
                self._windowed.add(column)

    # The window itself ------------------------------------------------------------------------------------------

    def _read_window(self, windowing: Windowing, below: Sequence[JavaNode]) -> None:
        if windowing.function == "window" and windowing.node.kind == "Project" and below and below[0].kind == "Filter":
            self._where.pop()  # Spark's own filter, of tuples without a time, which are in no window anyway
        text = self._print.meaning_of(windowing.time_text)
        if text is None:
            time = windowing.time
            text = self._print.text(time)
            if kind_of(time) == "Cast" and (inner := self._print.text(time.child())) in self._leaf_columns:
                text = inner if str(time.child().dataType().simpleString()) in ("date", "string") else text
        self._window = WrittenWindow(windowing.function, text, self._leaf_columns.get(text), windowing.lengths)
        if self._delay is not None and self._delay[0] != text:
            raise RefusedPlanError(
                "withWatermark and the window are over different times",
                f"the watermark is of {self._delay[0]}, and the window of {text}",
                "call withWatermark with the column of the window",
            )
        self._print.define(*windowing.column, windowing.function)
        self._windowed.add(windowing.column[1])


def _expressions(node: JavaNode) -> Iterator[Java]:
    for expression in elements(node.plan.expressions()):
        yield from nodes_below(expression)


def _joins_answers(join: JavaNode) -> bool:
    """Return whether both sides of a join aggregate."""
    return all(
        any(kind_of(node) == "Aggregate" for node in nodes_below(side)) for side in elements(join.plan.children())
    )


def _any_of(conditions: Sequence[str]) -> str:
    return " OR ".join(f"({condition})" for condition in conditions)
