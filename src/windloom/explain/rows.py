"""Row queries: what they report, how their rows are made, and what streams retain for them; and relations."""

from __future__ import annotations

from dataclasses import asdict

from windloom.explain.node import ExplainNode, Fact, json_only, words_only
from windloom.explain.words import WIDTH, listing, one_line, origin_text, output_text, shorten
from windloom.model.clauses import Emits
from windloom.model.formatting import amount, count, number, size_text
from windloom.model.rows import Reports
from windloom.model.stream import EnrichedStream, Version
from windloom.model.time import format_duration, spoken_duration
from windloom.plan.plan import Plan, PlannedRelation
from windloom.plan.rows import PlannedRows, Retention, near_join, store_size

_NAMED_READERS = 6


def relation_node(plan: Plan, planned: PlannedRelation) -> ExplainNode:
    relation, version = planned.relation, planned.version
    readers = [query.name for query in plan.queries if planned.name in query.query.relations]
    if relation.is_retroactive:
        seen = "a window sees the version of the round in which it closes"
    else:
        seen = "a tuple is joined with the version of the round in which it comes in"
    of_version, text = None, "not read yet"
    if version is not None:
        of_version = {"number": version.number, "round": version.round, "rows": version.rows, "bytes": version.nbytes}
        text = f"{version.number} since round {version.round}, {', '.join(_size_texts(planned, version))}"
    facts = [
        *json_only(name=planned.name),
        Fact("retroactive", relation.is_retroactive, seen, "sees"),
        *json_only(columns={name: kind.name for name, kind in relation.columns.items()}),
        Fact("version", of_version, text),
        *json_only(sets=list(planned.sets)),
        *json_only(projects=[] if planned.scan is None else [column.sql for column in planned.scan.columns]),
        Fact("read_by", readers, listing(map(one_line, readers), _NAMED_READERS), "read by"),
    ]
    return ExplainNode(shorten(f"Relation {one_line(planned.name)}: {relation.kind}", WIDTH), facts)


def _size_texts(planned: PlannedRelation, version: Version) -> list[str]:
    """Return the rows and the size of a version, as far as they are known."""
    rows = "rows not counted" if version.rows is None else count(version.rows, "row")
    if version.nbytes is None:
        return [rows, "size not known"]
    how = "kept" if planned.relation.is_retroactive else "as Spark estimates it"
    return [rows, f"{size_text(version.nbytes)} {how}"]


def relation_card(planned: PlannedRelation) -> list[str]:
    """Return the lines of the card in the picture: the name, the kind, the version, and its size."""
    version = planned.version
    if version is None:
        return [planned.name, f"{planned.relation.kind} relation", "not read yet", ""]
    rows, size = _size_texts(planned, version)
    return [planned.name, f"{planned.relation.kind} relation", f"version {version.number}, {rows}", size]


def enriched_node(stream: EnrichedStream) -> ExplainNode:
    """Return how the tuples of a stream are joined as they come in."""
    joined = [
        {"relation": each.relation, "label": each.label, "kind": str(each.kind), "on": each.on.sql}
        for each in stream.enrichments
    ]
    steps = (f"{each.kind.words} {each.relation} ON {each.on}" for each in stream.enrichments)
    name = one_line(f"tuples of {stream.base} as they come in: {', then '.join(steps)}")
    return ExplainNode(name, json_only(name=stream.name, stream=stream.base, joined=joined))


def store_node(plan: Plan, store: Retention) -> ExplainNode:
    rate, origin = plan.rate_of(plan.stream(store.stream))
    size, wheres = store_size(store, plan.rows, rate, origin), store.wheres
    expected = f"about {amount(size.tuples, 'tuple')}, {size_text(round(size.bytes))} of files"
    chosen = "every tuple" if wheres is None else " or ".join(f"({one_line(where)})" for where in wheres)
    facts = [
        Fact("stream", store.stream),
        Fact("columns", list(store.columns), ", ".join(map(one_line, store.columns)) or "none but the time"),
        Fact("where", wheres and list(wheres), chosen),
        Fact("kept_ticks", size.ticks, f"{spoken_duration(size.ticks)} behind the watermark", "kept for"),
        words_only("size", f"{expected}, if the rate of the stream is as {origin_text(size.origin)}"),
        *json_only(tuples=size.tuples, bytes=size.bytes, origin=asdict(size.origin)),
    ]
    return ExplainNode(shorten(f"Store: tuples of {one_line(store.stream)}, which a stream keeps", WIDTH), facts)


def rows_node(plan: Plan, planned: PlannedRows) -> ExplainNode:
    rows = planned.rows
    reports, keeps, source = _reports_text(planned), kept_texts(plan, planned), one_line(str(rows))
    strands, texts = [], []
    for strand in rows.strands:
        of_strand = {"alias": strand.alias, "stream": strand.stream, "window": None, "where": None}
        text = f"{strand.alias}: {strand.stream}"
        if not rows.within:
            of_strand["window"] = str(strand.window)
            text += f" {strand.window}"
        if strand.where is not None:
            of_strand["where"] = strand.where.sql
            text += f" where {one_line(strand.where.sql)}"
        strands.append(of_strand)
        texts.append(text)
    if rows.within:
        (selection,) = rows.selections
        parts = [one_line(selection.strands[0].alias)]
        for strand, attached in zip(selection.strands[1:], selection.attached, strict=True):
            assert attached.within_ticks is not None
            parts.append(f"{one_line(strand.alias)} within {format_duration(attached.within_ticks)}")
        source = " ⋈ ".join(parts)
    orders, is_joined = [], any(selection.joined > 1 for selection in rows.selections)
    for selection, order in zip(rows.selections, planned.orders, strict=True):
        if selection.joined > 1:
            names = " ⋈ ".join(one_line(selection.strands[number].alias) for number in order)
            why = "as it is written" if selection.joined < 3 else "by the rows that it is expected to touch"
            orders.append(words_only("order", f"{names}, {why}"))
    span = f"in {format_duration(rows.window.range_ticks)}" if rows.within else "per window"
    columns = ", ".join(one_line(row_column.name) for row_column in rows.columns)
    facts = [
        *json_only(name=planned.name, text=planned.query.text, window=source if rows.within else str(rows.window)),
        Fact("reports", reports, reports),
        Fact("strands", strands, texts),
        *json_only(orders=[list(order) for order in planned.orders]),
        *orders,
        Fact("expected_rows", planned.pairs, f"about {number(planned.pairs)} {span}" if is_joined else (), "rows"),
        words_only("made by", made_by(plan, planned)),
        Fact("keeps", keeps, keeps),
        words_only("answer", output_text(planned.query) if planned.is_aggregated else columns),
        *json_only(shape=planned.shape),
    ]
    return ExplainNode(shorten(f"Rows {one_line(planned.name)}: {source}", WIDTH), facts)


def made_by(plan: Plan, planned: PlannedRows) -> str:
    if near_join(planned, {name: plan.stream(name) for name in planned.rows.streams}) is not None:
        return "the driver in a stream, which looks kept tuples up by key and time; a Spark job in a batch run"
    return "one Spark job per round, of all such queries, from kept tuples"


def _reports_text(planned: PlannedRows) -> str:
    """Return which rows are reported, with a note if ISTREAM changes nothing."""
    rows = planned.rows
    if planned.is_aggregated:
        kept = "first and last end" if planned.is_summarised else "end"
        return f"an aggregate per window and group, of rows summarised by {kept}"
    if rows.within:
        return "each pair once, when both tuples are there: it is append-only, so ISTREAM changes nothing"
    if rows.reports is Reports.STANDING and planned.query.emission.kind is Emits.CHANGES:
        return "changes from window to window: a row once when it comes, and once when it goes"
    text = {
        Reports.STANDING: "RSTREAM: all rows of every window",
        Reports.ENTERING: "ISTREAM: rows that the window before did not have",
        Reports.LEAVING: "DSTREAM: rows that the window before had",
    }[rows.reports]
    # If every row is in a single window only, all rows of a window enter with it.
    is_once = rows.has_lifetimes and all(each.window.range_ticks <= each.window.slide_ticks for each in rows.strands)
    if rows.reports is Reports.ENTERING and is_once:
        return f"{text}; no row stands in two windows, so it is append-only without ISTREAM too"
    return text


def kept_texts(plan: Plan, planned: PlannedRows) -> list[str]:
    """Return what each stream keeps for one row query alone."""
    texts = []
    for name in planned.rows.streams:
        strands = [strand for strand in planned.rows.strands if strand.stream == name]
        stream, columns = plan.stream(name), sorted({column for strand in strands for column in strand.columns})
        conditions = {strand.condition for strand in strands}
        predicates = tuple(predicate for predicate in conditions if predicate is not None)
        types = tuple(stream.columns[column] for column in columns)
        store = Retention(name, tuple(columns), types, None if None in conditions else predicates)
        size = store_size(store, [planned], *plan.rate_of(stream))
        expected = f"about {amount(size.tuples, 'tuple')}, {size_text(round(size.bytes))}"
        texts.append(f"{one_line(name)}: {spoken_duration(size.ticks)}, {expected} (rate {origin_text(size.origin)})")
    return texts
