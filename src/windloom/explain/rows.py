"""EXPLAIN of row queries: the rows they report, how these are made, and the tuples that streams keep for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windloom.explain.labels import output_text
from windloom.explain.lines import WIDTH, fact, one_line, shorten
from windloom.explain.relations import size_text
from windloom.explain.statistics import origin_json, origin_text
from windloom.model.figures import amount, count, number
from windloom.model.rows import Reports, Rows, Selection
from windloom.model.time import format_duration
from windloom.plan.near import near_join
from windloom.plan.physical import Plan
from windloom.plan.rows import PlannedRows, Store, StoreSize, store_size

#: A plan with more row queries shows the first few only, unless all are asked for.
_MANY, _FEW = 12, 6
_SHOW_ALL = "(loom.explain(queries=True) shows all)"


def row_lines(plan: Plan, everything: bool) -> Iterator[str]:
    """What is kept of every stream, then every row query, each after an empty line."""
    for store in plan.stores:
        yield ""
        yield from store_lines(plan, store)
    shown = plan.rows if everything or len(plan.rows) <= _MANY else plan.rows[:_FEW]
    for planned in shown:
        yield ""
        yield shorten(f"Rows {one_line(planned.name)}: {source_text(planned.rows)}", WIDTH)
        yield from row_facts(plan, planned)
    if len(shown) < len(plan.rows):
        yield ""
        yield f"… and {count(len(plan.rows) - len(shown), 'more row query', 'more row queries')} {_SHOW_ALL}"


def store_lines(plan: Plan, store: Store) -> Iterator[str]:
    size = _size(plan, store)
    wheres = store.wheres
    yield shorten(f"Store: tuples of {one_line(store.stream)}, which a stream keeps", WIDTH)
    yield from fact("columns", ", ".join(map(one_line, store.columns)) or "none but the time")
    yield from fact(
        "where", "every tuple" if wheres is None else " or ".join(f"({one_line(where)})" for where in wheres)
    )
    yield from fact("kept for", f"{format_duration(size.ticks)} behind the watermark")
    expected = f"about {amount(size.tuples, 'tuple')}, {size_text(round(size.bytes))} of files"
    yield from fact("size", f"{expected}, if the rate of the stream is as {origin_text(size.origin)}")


def source_text(rows: Rows) -> str:
    """The streams and windows that rows are made of."""
    if not rows.within:
        return one_line(str(rows))
    (selection,) = rows.selections
    parts = [one_line(selection.strands[0].alias)]
    for strand, attached in zip(selection.strands[1:], selection.attached, strict=True):
        assert attached.within_ticks is not None
        parts.append(f"{one_line(strand.alias)} within {format_duration(attached.within_ticks)}")
    return " ⋈ ".join(parts)


def row_facts(plan: Plan, planned: PlannedRows) -> Iterator[str]:
    rows = planned.rows
    yield from fact("reports", reports_text(planned))
    label = "strands"
    for strand in rows.strands:
        where = "" if strand.where is None else f" where {one_line(strand.where.sql)}"
        window = "" if rows.within else f" {strand.window}"
        yield from fact(label, f"{strand.alias}: {strand.stream}{window}{where}")
        label = ""
    for selection, order in zip(rows.selections, planned.orders, strict=True):
        if selection.joined > 1:
            yield from fact("order", _order_text(selection, order))
    if any(selection.joined > 1 for selection in rows.selections):
        span = f"in {format_duration(rows.window.range_ticks)}" if rows.within else "per window"
        yield from fact("rows", f"about {number(planned.pairs)} {span}")
    yield from fact("made by", made_by(plan, planned))
    label = "keeps"
    for text in kept_texts(plan, planned):
        yield from fact(label, text)
        label = ""
    columns = ", ".join(one_line(row_column.name) for row_column in rows.columns)
    yield from fact("answer", output_text(planned.query) if planned.is_aggregated else columns)


def made_by(plan: Plan, planned: PlannedRows) -> str:
    if near_join(planned, {name: plan.stream(name) for name in planned.rows.streams}) is not None:
        return "the driver in a stream, which looks kept tuples up by key and time; a Spark job in a batch run"
    return "one Spark job per round, of all such queries, from kept tuples"


def reports_text(planned: PlannedRows) -> str:
    """The rows that are reported, with a note if ISTREAM changes nothing."""
    rows = planned.rows
    if planned.is_aggregated:
        kept = "first and last end" if planned.is_summarised else "end"
        return f"an aggregate per window and group, of rows summarised by {kept}"
    if rows.within:
        return "each pair once, when both tuples are there: it is append-only, so ISTREAM changes nothing"
    text = {
        Reports.STANDING: "RSTREAM: all rows of every window",
        Reports.ENTERING: "ISTREAM: rows that the window before did not have",
        Reports.LEAVING: "DSTREAM: rows that the window before had",
    }[rows.reports]
    if rows.reports is Reports.ENTERING and _stands_once(rows):
        return f"{text}; no row stands in two windows, so it is append-only without ISTREAM too"
    return text


def _stands_once(rows: Rows) -> bool:
    """Whether every row is in a single window only: then all rows of a window enter with it."""
    return rows.has_lifetimes and all(strand.window.range_ticks <= strand.window.slide_ticks for strand in rows.strands)


def _order_text(selection: Selection, order: tuple[int, ...]) -> str:
    names = " ⋈ ".join(one_line(selection.strands[number].alias) for number in order)
    why = "as it is written" if selection.joined < 3 else "by the rows that it is expected to touch"
    return f"{names}, {why}"


def kept_texts(plan: Plan, planned: PlannedRows) -> list[str]:
    """What each stream keeps for one row query alone."""
    found = []
    for name in planned.rows.streams:
        strands = [strand for strand in planned.rows.strands if strand.stream == name]
        stream, columns = plan.stream(name), sorted({column for strand in strands for column in strand.columns})
        conditions = {strand.condition for strand in strands}
        predicates = (
            None if None in conditions else tuple(predicate for predicate in conditions if predicate is not None)
        )
        store = Store(name, tuple(columns), tuple(stream.columns[column] for column in columns), predicates)
        size = store_size(store, [planned], *plan.rate_of(stream))
        expected = f"about {amount(size.tuples, 'tuple')}, {size_text(round(size.bytes))}"
        found.append(f"{one_line(name)}: {format_duration(size.ticks)}, {expected} (rate {origin_text(size.origin)})")
    return found


def _size(plan: Plan, store: Store) -> StoreSize:
    rate, origin = plan.rate_of(plan.stream(store.stream))
    return store_size(store, plan.rows, rate, origin)


def stores_json(plan: Plan) -> list[dict[str, Any]]:
    found = []
    for store in plan.stores:
        size = _size(plan, store)
        found.append(
            {
                "stream": store.stream,
                "columns": list(store.columns),
                "where": None if store.wheres is None else list(store.wheres),
                "kept_ticks": size.ticks,
                "tuples": size.tuples,
                "bytes": size.bytes,
                "origin": origin_json(size.origin),
            }
        )
    return found


def rows_json(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "name": planned.name,
            "text": planned.query.text,
            "window": source_text(planned.rows) if planned.rows.within else str(planned.rows.window),
            "reports": reports_text(planned),
            "strands": [
                {
                    "alias": strand.alias,
                    "stream": strand.stream,
                    "window": None if planned.rows.within else str(strand.window),
                    "where": None if strand.where is None else strand.where.sql,
                }
                for strand in planned.rows.strands
            ],
            "orders": [list(order) for order in planned.orders],
            "expected_rows": planned.pairs,
            "keeps": kept_texts(plan, planned),
            "shape": planned.shape,
        }
        for planned in plan.rows
    ]
