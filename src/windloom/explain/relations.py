"""EXPLAIN of relations: their kind, the version that was last seen, and the queries that read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from windloom.explain.labels import answer_text, component_name, grouping
from windloom.explain.lines import WIDTH, fact, listing, one_line, shorten, wrapped
from windloom.explain.partners import asked
from windloom.model.figures import count, number
from windloom.model.relation import EnrichedStream, Version
from windloom.plan.physical import PartialSet, Plan
from windloom.plan.relations import PlannedRelation

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
