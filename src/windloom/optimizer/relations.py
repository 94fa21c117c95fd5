"""Relations in a plan: which sets hold their versions, and the scans that make the cells of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from windloom.model.query import Query
from windloom.model.relation import Relation
from windloom.model.stream import Stream
from windloom.optimizer.intake.signature import is_fed
from windloom.optimizer.intake.woven import woven_scan
from windloom.optimizer.known import Known
from windloom.plan.physical import PartialSet
from windloom.plan.relations import PlannedRelation


def source_of(query: Query, sources: Mapping[str, Stream]) -> Stream:
    """What a query of one stream reads: a stream, as it is or enriched, or, for a side, a relation."""
    return next(iter(query.enriched), None) or sources[query.stream]


def plan_relations(
    queries: Iterable[Query], sources: Mapping[str, Stream], sets: Sequence[PartialSet], known: Known
) -> tuple[PlannedRelation, ...]:
    """The relations that queries read, by name."""
    planned = []
    for number, name in enumerate(sorted({name for query in queries for name in query.relations})):
        relation = sources[name]
        assert isinstance(relation, Relation)
        of_relation = [partial_set for partial_set in sets if partial_set.is_relation and partial_set.stream == name]
        fed = [partial_set for partial_set in of_relation if is_fed(partial_set)]
        scan = woven_scan(number, fed, why="a version is read as a whole") if fed else None
        planned.append(
            PlannedRelation(
                relation, tuple(partial_set.number for partial_set in of_relation), scan, known.versions.get(name)
            )
        )
    return tuple(planned)
