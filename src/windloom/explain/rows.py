"""EXPLAIN of row queries, of the tuples that streams retain for them, and of relations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windloom.explain.sharing import asked
from windloom.explain.words import (
    WIDTH,
    answer_text,
    component_name,
    fact,
    grouping,
    listing,
    one_line,
    origin_json,
    origin_text,
    output_text,
    shorten,
    wrapped,
)
from windloom.model.figures import amount, count, number
from windloom.model.relation import EnrichedStream, Version
from windloom.model.rows import Reports, Rows, Selection
from windloom.model.time import format_duration
from windloom.plan.near import near_join
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.relations import PlannedRelation
from windloom.plan.rows import PlannedRows, Store, StoreSize, store_size

_NAMED_READERS = 6


_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))


def relation_lines(plan: Plan) -> Iterator[str]:
    """Every relation, each after an empty line."""
    for planned in plan.relations:
        yield ""
        yield shorten(f"Relation {one_line(planned.name)}: {planned.relation.kind}", WIDTH)
        yield from fact("sees", seen_text(planned))
        yield from fact("version", version_text(planned))
        yield from fact("read by", listing(map(one_line, readers(plan, planned)), _NAMED_READERS))


def seen_text(planned: PlannedRelation) -> str:
    """The version that windows see."""
    if planned.relation.is_retroactive:
        return "a window sees the version of the round in which it closes"
    return "a tuple is joined with the version of the round in which it comes in"


def version_text(planned: PlannedRelation) -> str:
    version = planned.version
    if version is None:
        return "not read yet"
    parts = [f"{version.number} since round {version.round}", *size_texts(planned, version)]
    return ", ".join(parts)


def size_texts(planned: PlannedRelation, version: Version) -> list[str]:
    """Rows and size of a version, as far as they are known."""
    is_kept = planned.relation.is_retroactive
    rows = "rows not counted" if version.rows is None else count(version.rows, "row")
    if version.nbytes is None:
        return [rows, "size not known"]
    return [rows, f"{size_text(version.nbytes)} {'kept' if is_kept else 'as Spark estimates it'}"]


def size_text(nbytes: int) -> str:
    """
    >>> size_text(12), size_text(4 * 2**20)
    ('12 bytes', '4 MiB')
    """
    return next((f"{number(nbytes / unit)} {name}" for unit, name in _UNITS if nbytes >= unit), f"{nbytes} bytes")


def relation_card(planned: PlannedRelation) -> list[str]:
    """The lines of the card in the picture: the name, the kind, the version, and its size."""
    version = planned.version
    if version is None:
        return [planned.name, f"{planned.relation.kind} relation", "not read yet", ""]
    rows, size = size_texts(planned, version)
    return [planned.name, f"{planned.relation.kind} relation", f"version {version.number}, {rows}", size]


def relation_title(plan: Plan, planned: PlannedRelation) -> str:
    """The details that the picture shows when the reader points at a relation."""
    lines = (f"relation {planned.name}", seen_text(planned), f"version: {version_text(planned)}")
    return "\n".join((*lines, f"read by {listing(map(one_line, readers(plan, planned)), _NAMED_READERS)}"))


def readers(plan: Plan, planned: PlannedRelation) -> list[str]:
    """The queries that read a relation."""
    return [query.name for query in plan.queries if planned.name in query.query.relations]


def enriched_text(stream: EnrichedStream) -> str:
    """How the tuples of a stream are joined as they come in."""
    joined = ", then ".join(
        f"{enrichment.kind.words} {enrichment.relation} ON {enrichment.on}" for enrichment in stream.enrichments
    )
    return one_line(f"tuples of {stream.base} as they come in: {joined}")


def version_set_lines(plan: Plan, partial_set: PartialSet) -> Iterator[str]:
    """A set that holds the version of a relation: it has no slices, and costs one reading of every new version."""
    yield shorten(f"Set {partial_set.number}: rows of relation {one_line(partial_set.stream)}", WIDTH)
    yield from fact("where", "every row" if partial_set.where is None else one_line(partial_set.where.sql))
    yield from fact("group by", grouping(partial_set))
    is_fed = plan.scan_of(partial_set) is not None
    yield from fact("fed by", "every new version, as a whole" if is_fed else "nothing: no row satisfies its condition")
    wanted, label = asked(partial_set), "partials"
    for planned_component in partial_set.components:
        queries = count(wanted[planned_component.component], "side")
        yield from fact(label, f"{component_name(str(planned_component.component))}, asked by {queries} of joins")
        label = ""
    yield ""
    for planned in partial_set.queries:
        yield from wrapped(f"{one_line(planned.name)}: {answer_text(planned)}", "    ", "      ")


def relations_json(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "name": planned.name,
            "retroactive": planned.relation.is_retroactive,
            "columns": {name: kind.name for name, kind in planned.relation.columns.items()},
            "version": None if planned.version is None else _version_json(planned.version),
            "sets": list(planned.sets),
            "projects": [] if planned.scan is None else [column.sql for column in planned.scan.columns],
            "read_by": readers(plan, planned),
        }
        for planned in plan.relations
    ]


def enriched_json(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "name": stream.name,
            "stream": stream.base,
            "joined": [
                {
                    "relation": enrichment.relation,
                    "label": enrichment.label,
                    "kind": str(enrichment.kind),
                    "on": enrichment.on.sql,
                }
                for enrichment in stream.enrichments
            ],
        }
        for stream in plan.enriched
    ]


def _version_json(version: Version) -> dict[str, Any]:
    return {"number": version.number, "round": version.round, "rows": version.rows, "bytes": version.nbytes}


#: A plan with more row queries shows the first few only, unless all are asked for.
_MANY_ROWS, _FEW_ROWS = 12, 6


_SHOW_ALL = "(loom.explain(queries=True) shows all)"


def row_lines(plan: Plan, everything: bool) -> Iterator[str]:
    """What is kept of every stream, then every row query, each after an empty line."""
    for store in plan.stores:
        yield ""
        yield from store_lines(plan, store)
    shown = plan.rows if everything or len(plan.rows) <= _MANY_ROWS else plan.rows[:_FEW_ROWS]
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
