"""Reads the plan of a DataFrame of a classic session, as Spark's analyzer has resolved it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import get_field  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame

from windloom.language.sql.tokens import spelled
from windloom.model.time import TICKS_PER_SECOND
from windloom.spark.plans.jvm import Java, Printer, class_name, elements, place_of
from windloom.spark.plans.written import (
    WORKS_TODAY,
    RefusedPlanError,
    WrittenQuery,
    WrittenWindow,
    duration_literal,
    unique_names,
)

#: What Spark writes into the metadata of the columns that hold its windows.
_MARKERS = {"spark.timeWindow": "window", "spark.sessionWindow": "session_window"}
#: Nodes that change neither rows nor columns.
_TRANSPARENT = ("SubqueryAlias", "View", "CTERelationRef")
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
#: What to do instead of nodes that cannot stand above a window.
_INSTEAD = {
    "Join": "register each side by itself, and join the answers: results['a'].join(results['b'], ['window', …])",
    "Union": "register each part by itself, and unite the answers: results['a'].union(results['b'])",
    **dict.fromkeys(("GlobalLimit", "LocalLimit"), "leave it out, and limit the answer: results[name].limit(…)"),
    **dict.fromkeys(("Deduplicate", "Distinct"), "leave it out, and call it on the answer: results[name].distinct()"),
}
_MICROSECONDS_PER_DAY = 86_400 * TICKS_PER_SECOND


@dataclass(frozen=True)
class ClassicLeaf:
    """A part of a resolved plan."""

    spark: SparkSession
    plan: Java
    names: tuple[str, ...]
    label: str

    @property
    def frame(self) -> DataFrame:
        jvm: Any = self.spark._jvm
        made = ClassicFrame(
            jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.spark._jsparkSession, self.plan), self.spark
        )
        return made if tuple(made.columns) == self.names else made.toDF(*self.names)

    def reads_same(self, frame: DataFrame) -> bool:
        return self.names == tuple(frame.columns) and _gives_same(self.plan, _without_names(_resolved(frame)))


def read_classic(frame: DataFrame, registered: Iterable[DataFrame] = (), *, deep: bool = True) -> WrittenQuery:
    """Return the query that a DataFrame stands for.

    What it reads of `registered` streams is read as it is. Without `deep`, Spark computes all that is below the window.
    """
    return _Reader(frame, registered, deep).read()


def _resolved(frame: DataFrame) -> Java:
    return frame._jdf.queryExecution().analyzed()


def _gives_same(plan: Java, other: Java) -> bool:
    """Return whether two plans have the same rows, as Spark decides it for what is cached."""
    return bool(plan.semanticHash() == other.semanticHash() and plan.sameResult(other))


def _without_names(plan: Java) -> Java:
    """Return what a plan reads, without names for it, and without a watermark."""
    while class_name(plan) in (*_TRANSPARENT, "EventTimeWatermark"):
        plan = plan.child()
    return plan


class _Reader:
    def __init__(self, frame: DataFrame, registered: Iterable[DataFrame], deep: bool) -> None:
        self._frame = frame
        plans = (_without_names(_resolved(each)) for each in registered)
        self._registered = [plan for plan in plans if class_name(plan) in _READABLE]
        self._spark = frame.sparkSession
        self._deep = deep
        self._print = Printer(self._spark)
        self._window: WrittenWindow | None = None
        self._windowed: set[int] = set()  # the columns that depend on the window alone, by id
        self._where: list[str] = []
        self._having: list[str] = []
        self._order: list[str] = []
        self._delay: tuple[str, int] | None = None  # the time, and ticks
        self._common: dict[int, Java] = {}  # what WITH defines, by id
        self._leaf_columns: dict[str, str] = {}  # by their SQL
        self._leaf_types: dict[str, str] = {}

    def read(self) -> WrittenQuery:
        root = _resolved(self._frame)
        if class_name(root) == "WithCTE":
            self._common = {int(each.id()): each.child() for each in elements(root.cteDefs())}
            root = root.plan()
        above, aggregate = self._find_aggregate(root)
        leaf = self._read_below(self._child(aggregate))
        if self._window is None:
            raise self._no_window(aggregate)
        groups = self._read_aggregate(aggregate)
        for node in reversed(above):
            self._read_above(node)
        names = [str(each.name()) for each in elements(root.output())]
        columns = [self._print.meanings[each.exprId().id()] for each in elements(root.output())]
        return WrittenQuery(
            leaf,
            self._window,
            tuple(zip(columns, unique_names(names), strict=True)),
            self._frame.schema,
            tuple(self._where),
            tuple(groups),
            tuple(self._having),
            tuple(self._order),
            None if self._delay is None else self._delay[1],
            self._frame.isStreaming,
        )

    # Above the window -------------------------------------------------------------------------------------------

    def _find_aggregate(self, node: Java) -> tuple[list[Java], Java]:
        """Return the nodes above the aggregation, from the top, and the aggregation."""
        above: list[Java] = []
        while (kind := class_name(node)) != "Aggregate":
            if kind not in (*_READABLE, "Sort", *_TRANSPARENT):
                if not any(class_name(each) == "Aggregate" for each in _below(node)):
                    raise RefusedPlanError(
                        "the DataFrame has no window",
                        f"its plan is a {kind} without an aggregation",
                        "group it: df.groupBy(window('ts', '1 hour', '1 minute'), …).agg(…)",
                    )
                raise RefusedPlanError(
                    f"the plan node '{kind}' cannot stand above a window",
                    _shown(node),
                    _INSTEAD.get(kind, WORKS_TODAY),
                    place_of(self._expressions(node)),
                )
            above.append(node)
            node = self._child(node)
        return above, node

    def _child(self, node: Java) -> Java:
        """Return what a node with one input reads; for a name that WITH defines, its definition."""
        return self._common[int(node.cteId())] if class_name(node) == "CTERelationRef" else node.child()

    def _read_above(self, node: Java) -> None:
        kind = class_name(node)
        for expression in elements(node.expressions()):
            for pattern, what in _BY_SPARK.items():
                if self._print.holds(expression, pattern):
                    raise RefusedPlanError(
                        f"{what} above the window is not supported",
                        f"the plan has {_shown(expression)} over aggregates",
                        "apply it to the rows of the answer: loom.run()[name].select(…)",
                        place_of(iter([expression])),
                    )
        if kind in _TRANSPARENT:
            self._rename(node)
        elif kind == "Project":
            self._define(node.projectList())
        elif kind == "Filter":
            self._having.append(self._print.text(node.condition()))
        elif kind == "Sort":
            self._order = [self._key(each) for each in elements(node.order())]

    def _key(self, order: Java) -> str:
        words = str(order.sql())[len(str(order.child().sql())) :]
        return f"{self._print.text(order.child())}{words}"

    def _read_aggregate(self, aggregate: Java) -> list[str]:
        """Read the aggregation, and return its grouping expressions other than the window."""
        groups, is_windowed = [], False
        for expression in elements(aggregate.groupingExpressions()):
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
        for expression in elements(aggregate.aggregateExpressions()):
            self._refuse_unreadable(expression)
        self._define(aggregate.aggregateExpressions())
        return groups

    def _refuse_unreadable(self, expression: Java) -> None:
        for pattern, what in _BY_SPARK.items():
            if self._print.holds(expression, pattern):
                raise RefusedPlanError(
                    f"{what} inside an aggregation is not supported",
                    f"the plan has {_shown(expression)}",
                    "compute it in a column before the window: df.withColumn(…).groupBy(window(…))",
                    place_of(iter([expression])),
                )
        if not expression.deterministic():
            raise RefusedPlanError(
                f"'{_shown(expression)}' gives another value every time it is evaluated",
                "an answer must not depend on when or how often a tuple is read",
                "write such values to the data first",
                place_of(iter([expression])),
            )

    def _no_window(self, aggregate: Java) -> RefusedPlanError:
        if any(_window_column(each) is not None for each in _below(aggregate)):
            return RefusedPlanError(
                "an aggregation over the answers of a window is not supported",
                f"the plan has {_shown(aggregate)} above it",
                "register the inner DataFrame, and aggregate the rows of its answer: loom.run()[name].groupBy(…)",
                place_of(self._expressions(aggregate)),
            )
        return RefusedPlanError(
            "the DataFrame has no window",
            f"its aggregation is {_shown(aggregate)}",
            "group by a window as well: df.groupBy(window('ts', '1 hour', '1 minute'), …).agg(…)",
            place_of(self._expressions(aggregate)),
        )

    # Below the window -------------------------------------------------------------------------------------------

    def _read_below(self, node: Java) -> ClassicLeaf:
        """Read what is below the aggregation, and return what Spark computes of it."""
        chain = []
        while True:
            chain.append(node)
            if self._is_windowing(node):
                break
            if class_name(node) == "Expand":
                raise RefusedPlanError(
                    "rollup, cube and grouping sets are not supported",
                    "the plan groups by several lists of columns",
                    "register a DataFrame for each of them: groupBy(window(…), …)",
                    place_of(self._expressions(node)),
                )
            if class_name(node) not in (*_READABLE, *_TRANSPARENT):
                return self._leaf(node, [])  # no window: the aggregation is refused
            node = self._child(node)
        windowing = chain.pop()
        below: list[Java] = []
        node, found = self._child(windowing), None
        label = ""
        while found is None:
            kind = class_name(node)
            if kind == "SubqueryAlias" and not str(node.alias()).startswith("__"):
                label = str(node.alias())
            if kind == "EventTimeWatermark" or kind in _TRANSPARENT or (self._deep and self._is_readable(node)):
                below.append(node)
                node = self._child(node)
            else:
                found = node
        leaf = self._leaf(found, below, label)
        for each in reversed(below):
            self._read_node(each)
        self._read_window(windowing, below)
        chain_up = list(reversed(chain))
        if chain_up and class_name(chain_up[0]) == "Filter" and self._is_own_filter(chain_up[0], windowing):
            chain_up = chain_up[1:]
        for each in chain_up:
            self._read_node(each)
        return leaf

    def _is_readable(self, node: Java) -> bool:
        """Return whether a node becomes a part of the query; otherwise Spark computes it."""
        if class_name(node) not in _READABLE or self._is_cached(node):
            return False
        if any(_gives_same(node, plan) for plan in self._registered):
            return False
        return all(
            expression.deterministic() and not any(self._print.holds(expression, pattern) for pattern in _BY_SPARK)
            for expression in elements(node.expressions())
        )

    def _is_cached(self, node: Java) -> bool:
        session = self._spark._jsparkSession
        return bool(session.sharedState().cacheManager().lookupCachedData(session, node).isDefined())

    def _leaf(self, node: Java, below: Sequence[Java], label: str = "") -> ClassicLeaf:
        output = elements(node.output())
        names = unique_names([str(each.name()) for each in output], _WINDOW_NAMES)
        for column, name in zip(output, names, strict=True):
            self._print.meanings[column.exprId().id()] = spelled(name)
        self._leaf_columns = {spelled(name): name for name in names}
        self._leaf_types = {name: str(each.dataType().simpleString()) for name, each in zip(names, output, strict=True)}
        return ClassicLeaf(self._spark, node, names, label or _label(node))

    def _read_node(self, node: Java) -> None:
        match class_name(node):
            case "Project":
                self._define(node.projectList())
            case "Filter":
                self._read_filter(node.condition())
            case "EventTimeWatermark":
                self._read_watermark(node)
            case _:
                self._rename(node)

    def _read_filter(self, condition: Java) -> None:
        text = self._print.text(condition)
        read = _column_ids(condition)
        if not read & self._windowed:
            self._where.append(text)
        elif read <= self._windowed:
            self._having.append(text)  # a condition on the window alone holds for all tuples of a window or for none
        else:
            raise RefusedPlanError(
                "a condition compares the window with columns",
                f"the plan filters by {_shown(condition)} before it aggregates",
                "compare the time column instead, or filter the answer by its window",
                place_of(iter([condition])),
            )

    def _read_watermark(self, node: Java) -> None:
        self._delay = self._print.meanings[node.eventTime().exprId().id()], self._ticks(node.delay())
        self._rename(node)

    def _rename(self, node: Java) -> None:
        for old, new in zip(elements(self._child(node).output()), elements(node.output()), strict=True):
            before, after = old.exprId().id(), new.exprId().id()
            self._print.meanings[after] = self._print.meanings[before]
            if before in self._windowed:
                self._windowed.add(after)

    def _define(self, columns: Java) -> None:
        made = {}
        for column in elements(columns):
            if class_name(column) == "Alias":
                made[column.exprId().id()] = self._print.text(column.child())
                if self._windowed and (read := _column_ids(column.child())) and read <= self._windowed:
                    self._windowed.add(column.exprId().id())
        self._print.meanings |= made

    # The window itself ------------------------------------------------------------------------------------------

    def _is_windowing(self, node: Java) -> bool:
        return _window_column(node) is not None

    def _is_own_filter(self, node: Java, windowing: Java) -> bool:
        """Return whether Spark has added a filter to windows that it expands: NULL times, and windows that miss one."""
        return class_name(windowing) == "Expand" or _function(windowing) == "session_window"

    def _read_window(self, node: Java, below: Sequence[Java]) -> None:
        column = _window_column(node)
        function = _function(node)
        assert column is not None
        struct = node.projections().apply(0).apply(0) if class_name(node) == "Expand" else column.child()
        _, start, _, end = elements(struct.children())
        if function == "session_window":
            time, lengths = self._session(start, end)
        else:
            time, lengths = self._time_window(end)
            if class_name(node) == "Project" and below and class_name(below[0]) == "Filter":
                # Spark's own filter, of tuples without a time, which are in no window anyway.
                self._where.pop()
        text = self._print.text(time)
        if class_name(time) == "Cast" and self._leaf_types.get(
            self._leaf_columns.get(inner := self._print.text(time.child()), "")
        ) in ("date", "string"):
            text = inner
        self._window = WrittenWindow(function, text, self._leaf_columns.get(text), lengths)
        if self._delay is not None and self._delay[0] != text:
            raise RefusedPlanError(
                "withWatermark and the window are over different times",
                f"the watermark is of {self._delay[0]}, and the window of {text}",
                "call withWatermark with the column of the window",
            )
        self._print.meanings[column.exprId().id()] = function
        self._windowed.add(column.exprId().id())

    def _time_window(self, end: Java) -> tuple[Java, tuple[str, ...]]:
        """Return the time and the lengths: the end is `((t − CASE … END) − i · slide) + range`, in microseconds."""
        length = _inside(end)  # an addition
        start, length_ticks = length.left(), int(length.right().eval(None))
        latest = start.left()
        rest = elements(latest.right().children())[0].left()  # the remainder: (t − offset) % slide
        offset, slide = int(rest.left().right().eval(None)), int(rest.right().eval(None))
        lengths = [duration_literal(length_ticks)]
        if slide != length_ticks or offset:
            lengths.append(duration_literal(slide))
        if offset:
            lengths.append(duration_literal(offset))
        return latest.left().child(), tuple(lengths)

    def _session(self, start: Java, end: Java) -> tuple[Java, tuple[str, ...]]:
        """Return the time and the gap: the end is the time plus an interval."""
        addition = _inside(end)
        while class_name(addition) == "Cast":
            addition = addition.child()
        gap = addition.children().apply(1)
        if not gap.foldable():
            raise RefusedPlanError(
                "sessions whose gap varies are not supported",
                f"the gap is {_shown(gap)}",
                "give session_window one gap: session_window('ts', '5 minutes')",
                place_of(iter([gap])),
            )
        interval = gap.eval(None)
        return _inside(start), (duration_literal(self._ticks(interval)),)

    def _ticks(self, interval: Java) -> int:
        if get_field(interval, "months"):
            raise RefusedPlanError(
                "months have no fixed length", f"the plan has an interval of {interval.toString()}", "give it in days"
            )
        return int(get_field(interval, "days")) * _MICROSECONDS_PER_DAY + int(get_field(interval, "microseconds"))

    def _expressions(self, node: Java) -> Iterator[Java]:
        for expression in elements(node.expressions()):
            yield from _below(expression)


def _column_ids(expression: Java) -> set[int]:
    """Return the ids of the columns that an expression reads."""
    return {int(each.exprId().id()) for each in elements(expression.references().toSeq())}


def _inside(expression: Java) -> Java:
    """Return the number of microseconds that an edge of a window is made from."""
    while class_name(expression) in ("KnownNullable", "PreciseTimestampConversion"):
        expression = expression.child()
    return expression


def _window_column(node: Java) -> Java | None:
    """Return the column that holds the windows, if the node makes them."""
    kind = class_name(node)
    if kind == "Expand":
        if class_name(node.projections().apply(0).apply(0)) != "CreateNamedStruct":
            return None  # the Expand of a ROLLUP
        first = node.output().apply(0)
    elif kind == "Project" and node.projectList().size():
        first = node.projectList().apply(0)
        if class_name(first) != "Alias" or class_name(first.child()) != "CreateNamedStruct":
            return None
    else:
        return None
    return first if any(first.metadata().contains(marker) for marker in _MARKERS) else None


def _function(node: Java) -> str:
    column = _window_column(node)
    assert column is not None
    return next(name for marker, name in _MARKERS.items() if column.metadata().contains(marker))


def _below(node: Java) -> Iterator[Java]:
    """Return a node and all nodes below it, the node first."""
    yield node
    for child in elements(node.children()):
        yield from _below(child)


def _shown(thing: Java, length: int = 120) -> str:
    text = " ".join(str(thing.simpleString(25)).split())
    return text if len(text) <= length else text[: length - 1] + "…"


def _label(node: Java) -> str:
    """Return a name for a leaf: that of its table, or of the folder or file that it reads."""
    kind = class_name(node)
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
