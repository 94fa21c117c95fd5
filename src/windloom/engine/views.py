"""Views of plans, charts and answers for notebooks: pictures, HTML tables, pandas, polars.

What draws or explains is imported when it is used: most runs show nothing.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windloom.answers.presentation import local_times
from windloom.errors import WindloomError, near_names
from windloom.optimizer.cost.constants import Constants, load_constants
from windloom.optimizer.plan_cost import estimate_plan
from windloom.plan.plan import Plan

if TYPE_CHECKING:
    from windloom.engine.plots import Plot
    from windloom.explain.costs import CostView
    from windloom.plan.adapting import ChartView


class Picture(str):
    """An SVG file: text to programs, a picture in notebooks; `save` writes it to a file."""

    __slots__ = ()

    def save(self, path: str | Path) -> None:
        from windloom.engine.plots import save_picture

        save_picture(str(self), Path(path))

    def _repr_svg_(self) -> str:
        return str(self)


class AnswerViews:
    """Answers of one query as pandas, polars or a chart, for any class that returns them as Arrow."""

    @abstractmethod
    def arrow(self, name: str) -> pa.Table: ...

    def rows(self, name: str) -> pa.Table:
        """Return the rows of a query with their window and their groups, whatever it selects."""
        return self.arrow(name)

    @abstractmethod
    def grouping(self, name: str) -> list[str]:
        """Return the grouping columns of a query."""

    @property
    def zone(self) -> str:
        """The zone of the session, in which instants are shown."""
        return "UTC"

    def pandas(self, name: str) -> Any:
        """Return the rows of a query as a pandas DataFrame, with times as Spark's `toPandas` has them."""
        rows = self.arrow(name)
        fields = [
            pa.field(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
            for field in rows.schema
        ]
        return local_times(rows.cast(pa.schema(fields)), self.zone).to_pandas(coerce_temporal_nanoseconds=True)

    def polars(self, name: str) -> Any:
        """Return the rows of a query as a polars DataFrame, if polars is installed."""
        if find_spec("polars") is None:
            raise WindloomError("polars is not installed", "it is not needed for anything else", "pip install polars")
        return import_module("polars").from_arrow(self.arrow(name))

    def plot(
        self, name: str, column: str | None = None, *, groups: Sequence[Any] | None = None, most: int = 10
    ) -> Plot:
        """Return a picture of a column over time, with a line per group; by default the first column of numbers.

        Of many groups, those `most` are shown whose mean is highest; `groups` names others: `groups=["ACME", "BOLT"]`,
        or tuples, if there are several grouping columns.
        """
        from windloom.engine.plots import plot_of

        return plot_of(name, self.rows(name), self.grouping(name), column, groups, most, self.zone)


def facts_table(caption: str, facts: Mapping[str, object]) -> str:
    """Return names and values as an HTML table; all text is escaped."""
    cell = "style='text-align:left'"
    rows = "".join(
        f"<tr><th {cell}>{_html(name)}</th><td {cell}>{_html(value)}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    return f"<table><caption>{_html(caption)}</caption>{rows}</table>"


def rows_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows under their columns as an HTML table; all text is escaped."""
    head = "".join(f"<th>{_html(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{_html(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><caption>{_html(caption)}</caption><tr>{head}</tr>{body}</table>"


def _html(value: object) -> str:
    from windloom.explain.picture.canvas import escape

    return escape(_as_text(value))


def _as_text(value: object) -> str:
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
            return ", ".join(f"{name} {_as_text(item)}" for name, item in value.items())
        case _:
            return str(value)


#: The two ways to show the cost of a plan: predicted seconds, or the operations that the papers count.
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
    """Return what a plan costs, in seconds or as the papers count."""
    from windloom.explain.costs import PaperView, SecondsView
    from windloom.optimizer.cost.papers import paper_costs

    check_cost(name)
    if name == "paper":
        return PaperView(plan, paper_costs(plan))
    return SecondsView(plan, estimate_plan(plan, constants))


def picture_of(plan: Plan) -> str:
    """Return the plan as notebooks show it."""
    from windloom.explain.picture.picture import explain_svg

    return explain_svg(plan, cost_view(plan, "seconds", load_constants()))


def charts_as(format: str, charts: tuple[ChartView, ...]) -> str:
    """Return the charts as text, JSON or a picture."""
    from windloom.explain.charts import chart_json, chart_svg, charts_text

    match format:
        case "text":
            return charts_text(charts)
        case "json":
            return json.dumps([chart_json(chart) for chart in charts], indent=2, ensure_ascii=False)
        case "svg":
            return Picture(chart_svg(charts))
    raise WindloomError(
        f"unknown format '{format}'", "a chart is text, data or a picture", "use 'text', 'json' or 'svg'"
    )


Plan.drawn = picture_of
