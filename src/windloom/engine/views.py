"""Views for notebooks, and answers in the forms that are used there: pandas, polars, a chart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from windloom.errors import WindloomError, near_names
from windloom.explain.costs import CostView, PaperView, SecondsView
from windloom.explain.picture.canvas import escape
from windloom.explain.picture.picture import explain_svg
from windloom.optimizer.cost.constants import Constants, load_constants
from windloom.optimizer.cost.papers import paper_costs
from windloom.optimizer.plan_cost import estimate_plan
from windloom.plan.plan import Plan

#: The most lines that can still be told apart.
_MOST_LINES = 10


class Picture(str):
    """An SVG file: text to programs, a picture in notebooks."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


class AnswerViews:
    """Answers of one query as pandas, polars or a chart, for any class that returns them as Arrow."""

    @abstractmethod
    def arrow(self, name: str) -> pa.Table: ...

    @abstractmethod
    def grouping(self, name: str) -> list[str]:
        """Return the grouping columns of a query."""

    def pandas(self, name: str) -> Any:
        """Return the rows of a query as a pandas DataFrame."""
        return self.arrow(name).to_pandas()

    def polars(self, name: str) -> Any:
        """Return the rows of a query as a polars DataFrame, if polars is installed."""
        if find_spec("polars") is None:
            raise WindloomError("polars is not installed", "it is not needed for anything else", "pip install polars")
        return import_module("polars").from_arrow(self.arrow(name))

    def plot(self, name: str, column: str | None = None) -> Picture:
        """Return a picture of a column over time, with a line per group; by default the first column that holds
        numbers.
        """
        rows = self.arrow(name)
        groups = self.grouping(name)
        wanted = _figure(rows, groups, column)
        return _lines(rows, groups, wanted, f"{wanted} of {name}")


def _figure(rows: pa.Table, groups: Sequence[str], column: str | None) -> str:
    fields = [
        shown_field for shown_field in rows.schema if shown_field.name not in ("window_start", "window_end", *groups)
    ]
    numbers = [field.name for field in fields if _is_number(field.type)]
    if column is None and numbers:
        return str(numbers[0])
    if column is not None and column in numbers:
        return column
    what = "the query has no column of numbers" if column is None else f"column '{column}' is not one of numbers"
    known = near_names(column or "", numbers) if numbers else "read the rows instead: arrow(name), or pandas(name)"
    raise WindloomError(f"there is nothing to plot: {what}", f"its columns are {', '.join(rows.column_names)}", known)


def _lines(rows: pa.Table, groups: Sequence[str], figure: str, title: str) -> Picture:
    from windloom.explain.picture.line_charts import Series, line_chart

    rows = rows.sort_by("window_end")
    ends, values = rows["window_end"].to_pylist(), rows[figure].cast(pa.float64()).to_pylist()
    keys = list(zip(*(rows[name].to_pylist() for name in groups), strict=True)) if groups else [()] * len(ends)
    points_by_key: dict[tuple[Any, ...], list[tuple[Any, float | None]]] = {}
    for key, end, value in zip(keys, ends, values, strict=True):
        points_by_key.setdefault(key, []).append((end, value))
    shown = sorted(points_by_key.items(), key=lambda item: repr(item[0]))[:_MOST_LINES]
    series = [Series(", ".join(map(str, key)) or figure, points) for key, points in shown]
    left_out = len(points_by_key) - len(shown)
    label = f"{figure}; {left_out:,} more groups are not shown" if left_out else figure
    return Picture(line_chart(series, y_label=label, title=title))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def facts_table(caption: str, facts: Mapping[str, object]) -> str:
    """Return names and values as an HTML table; all text is escaped."""
    cell = "style='text-align:left'"
    rows = "".join(
        f"<tr><th {cell}>{escape(name)}</th><td {cell}>{escape(_told(value))}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    return f"<table><caption>{escape(caption)}</caption>{rows}</table>"


def rows_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(_told(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"


def _told(value: object) -> str:
    match value:
        case None:
            return "–"
        case bool() | str():
            return str(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.3f}"
        case Mapping():
            return ", ".join(f"{name} {_told(item)}" for name, item in value.items())
        case _:
            return str(value)


# The two ways to show the cost of a plan: predicted seconds, or the operations that the papers count.

COSTS = ("seconds", "paper")


def check_cost(name: str) -> None:
    if name not in COSTS:
        fact = "a plan costs predicted seconds, or operations as the papers count them"
        raise WindloomError(f"unknown cost '{name}'", fact, near_names(name, list(COSTS)))


def check_view(cost: str, format: str, query: str | None, *, sharing: bool) -> None:
    """Raise for options that cannot be shown together, before a plan is made."""
    check_cost(cost)
    refused = None
    if sharing and cost != "seconds":
        refused = f"sharing cannot be shown with cost '{cost}'", "it is predicted in seconds"
    elif sharing and (query is not None or format == "svg"):
        how = "as a picture" if format == "svg" else "of one query"
        refused = f"sharing cannot be shown {how}", "it compares all queries, as text or JSON"
    elif query is not None and format != "text":
        refused = f"query '{query}' cannot be shown as {format}", "one query is shown as text"
    if refused is not None:
        raise WindloomError(*refused, "leave one of the two out")


def cost_view(plan: Plan, name: str, constants: Constants) -> CostView:
    check_cost(name)
    if name == "paper":
        return PaperView(plan, paper_costs(plan))
    return SecondsView(plan, estimate_plan(plan, constants))


def picture_of(plan: Plan) -> str:
    """Return the plan as notebooks show it."""
    return explain_svg(plan, cost_view(plan, "seconds", load_constants()))


Plan.drawn = picture_of
