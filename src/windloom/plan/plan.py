"""A plan: streams are cut into slices, slices are summarised into sets of partials, and trees answer queries from them.

Plan ─┬─ Scan         one reading of a stream, which makes the cells of all its sets: see `plan.scans`
      ├─ PartialSet   one stream, one predicate, one grouping: what its queries are answered from
      │   ├─ components      what is summarised
      │   ├─ slice_id        how a tuple finds its slice, natively
      │   └─ Tree ...        queries that share slices; each tree coarsens the set's slices to its own
      │       └─ PlannedQuery ...   a query, or a side of joins
      ├─ PlannedRelation  rows that joins read besides streams: see `plan.relations`
      ├─ PlannedJoin  a query whose sides are in trees, folded together
      ├─ Store        what is kept of the tuples of a stream: see `plan.rows`
      ├─ PlannedRows  a query of rows, which a Spark job makes from stores
      └─ Shape        queries with equal output columns share one table of answers
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import ClassVar

from windloom.aggregates.registry import PlannedComponent
from windloom.model.aggregate import Component
from windloom.model.clauses import Emits
from windloom.model.expression import Expression, ExpressionKey
from windloom.model.join import Join
from windloom.model.predicate import Predicate
from windloom.model.query import Query
from windloom.model.stream import DEFAULT_EVENTS_PER_SECOND, EnrichedStream, Relation, Stream, Version
from windloom.model.types import TIMESTAMP, DataType
from windloom.model.windows import Window
from windloom.plan.rows import PlannedPart, PlannedRows, Retention
from windloom.plan.scans import Scan, WovenScan
from windloom.slicing.edges import EdgeSet
from windloom.slicing.slice_id import SliceId
from windloom.statistics.observations import LinkEstimate
from windloom.statistics.set_statistics import ASSUMED, GIVEN, Origin, SetIdentity, Statistics

# The relations of a plan: how the rows of a retroactive one become the cells of the sets that joins read.


@dataclass(frozen=True, slots=True)
class PlannedRelation:
    """A relation, and the sets that hold its version.

    `sets` are the numbers of the sets that hold its version; none if it is not retroactive.

    `scan` makes their cells from all rows of a version, and is None if no row can be part of any set. `version` is the
    last one that was seen, if any; it does not count for equality.
    """

    relation: Relation
    sets: tuple[int, ...] = ()
    scan: WovenScan | None = None
    version: Version | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        return self.relation.name


@dataclass(frozen=True, slots=True)
class Shape:
    """One table of answers. `groups` and `columns` are (name, type) of what the step writes.

    If queries compute over their aggregates or filter groups, the step writes columns named `__g0`, `__a0`, …, and
    `select` (name, expression) and `having` are evaluated over them. If both are None, its columns are the answer.
    """

    groups: tuple[tuple[str, DataType], ...]
    columns: tuple[tuple[str, DataType], ...]
    select: tuple[tuple[str, Expression], ...] | None = None
    having: Expression | None = None
    time: DataType = TIMESTAMP  # of window_start and window_end
    emits: Emits = Emits.FINAL


@dataclass(frozen=True, slots=True)
class PlannedQuery(PlannedPart):
    """A query with its place; `group_positions` are the places of its grouping columns among those of the set."""

    shape: int
    group_positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlannedSide(PlannedPart):
    """A side of joins, which is answered like a query but has no shape: its answers go to folds."""

    group_positions: tuple[int, ...]


#: The queries and sides that a tree answers.
Member = PlannedQuery | PlannedSide


@dataclass(frozen=True, slots=True)
class SidePlace:
    """Where a side of a join is answered: the tree, and the name of the hidden query in it."""

    set: int
    tree: int
    name: str


#: Tuples in order of a join key: the number of the scan that reads them, and the place among the feeds of that scan.
FeedPlace = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PlannedJoin(PlannedPart):
    """A join query: its sides, and how their answers are folded.

    `order` are the links of the join in the order in which they are folded: the links of a child come before the link
    to its parent. `components` are those of the query, with the types of their arguments. `tuples` shows where both
    sides find their tuples in order of the join key, if a batch run may fold these instead of cells.
    """

    shape: int
    sides: tuple[SidePlace, ...]
    components: tuple[PlannedComponent, ...]
    fold: str
    order: tuple[int, ...]
    observed: tuple[LinkEstimate, ...] = field(default=(), compare=False)  # by link, if rounds have shown them
    tuples: tuple[FeedPlace, ...] = ()

    @property
    def join(self) -> Join:
        assert self.query.join is not None
        return self.query.join

    @property
    def pairing(self) -> object:
        """The value that joins must have in common to share a slice matrix."""
        return tuple(place.set for place in self.sides), self.join.links, self.join.groups


#: A user's query, as planned.
Planned = PlannedQuery | PlannedJoin | PlannedRows
#: A user's query as planned, or a side of joins.
Asking = Planned | PlannedSide


@dataclass(frozen=True, slots=True)
class Tree:
    """Queries that share slices. Queries of one shape are adjacent, and sides of joins come last.

    `marks` are the edges at which Cutty-slicing reads running values; no classes otherwise.
    """

    number: int
    queries: tuple[Member, ...]
    edges: EdgeSet
    marks: EdgeSet
    techniques: tuple[str, ...]  # one for each component of the set

    @property
    def answered(self) -> tuple[PlannedQuery, ...]:
        """The queries of users that the tree answers, without sides of joins."""
        return tuple(planned for planned in self.queries if isinstance(planned, PlannedQuery))

    @property
    def edges_per_second(self) -> float:
        return self.edges.edges_per_second

    @property
    def fine_edges(self) -> EdgeSet:
        """Edges and marks together, at which the tree needs the partials of the set to be cut."""
        return self.edges if not self.marks.classes else self.edges.union(self.marks)


@dataclass(frozen=True, slots=True)
class PartialSet:
    """Everything that one stream, predicate and grouping is summarised into, once.

    `slice_id` is how tuples would find their slices if the set had a scan of its own.
    """

    number: int
    stream: str
    predicate: Predicate | None  # None: every tuple
    group_by: tuple[Expression, ...]
    group_types: tuple[DataType, ...]
    components: tuple[PlannedComponent, ...]  # the first is always COUNT(*)
    edges: EdgeSet
    slice_id: SliceId
    trees: tuple[Tree, ...]
    # How the set was planned; this does not count for equality.
    statistics: Statistics = field(compare=False)  # the statistics that its cost was estimated with
    strategy: str = field(compare=False)  # that formed its trees; if the plan's is `auto`, the one chosen

    @property
    def identity(self) -> SetIdentity:
        """The value that identifies the set from plan to plan."""
        return SetIdentity.of(self.stream, self.predicate, self.group_by, self.window)

    @property
    def text(self) -> str:
        """The set as a user would write it: `trades [ROWS] WHERE price > 1 GROUP BY symbol`."""
        identity = self.identity
        parts = [self.stream, self.window.set_text]
        parts += [f"WHERE {identity.predicate}"] if identity.predicate else []
        parts += [f"GROUP BY {', '.join(identity.grouping)}"] if identity.grouping else []
        return " ".join(part for part in parts if part)

    @property
    def queries(self) -> Iterator[Member]:
        for tree in self.trees:
            yield from tree.queries

    @property
    def where(self) -> Expression | None:
        return None if self.predicate is None else self.predicate.expression

    @property
    def window(self) -> Window:
        """One window of its queries. It determines how the set is cut and fed, which all of them have in common."""
        return next(self.queries).query.window

    @property
    def is_relation(self) -> bool:
        """Whether it holds the version of a relation: then `stream` is the name of that relation."""
        return self.window.is_version

    @property
    def base(self) -> str:
        """The stream whose frontier shows how far its tuples have come; `stream` may be that stream, enriched."""
        source = next(self.queries).query.source
        return source.streams[0] if source.streams else self.stream

    @property
    def counted_by(self) -> tuple[Expression, ...] | None:
        """None if slices are stretches of time; otherwise the keys by which tuples are counted."""
        return self.window.counted_by


@dataclass(frozen=True)  # without slots, so that it can cache the queries by name
class Plan:
    """Everything that will run: what is read, how it becomes cells, and how queries are answered.

    `strategy`, `slicing`, `technique`, `intake`, `join_plan` and `fold` are the settings it was made with.

    A stream has one scan whose slices are of time, and one for every way in which its tuples are counted. `enriched`
    are the streams that are read joined with relations, each with scans of its own.
    """

    streams: tuple[Stream, ...]
    sets: tuple[PartialSet, ...]
    scans: tuple[Scan, ...]
    shapes: tuple[Shape, ...]
    joins: tuple[PlannedJoin, ...]
    strategy: str
    slicing: str
    technique: str
    intake: str = "auto"
    join_plan: str = "auto"
    fold: str = "auto"
    rows: tuple[PlannedRows, ...] = ()
    stores: tuple[Retention, ...] = ()  # of a stream; a batch run keeps nothing
    enriched: tuple[EnrichedStream, ...] = ()
    relations: tuple[PlannedRelation, ...] = ()
    #: Draws a plan for a notebook; set by the engine, which this folder cannot import.
    drawn: ClassVar[Callable[[Plan], str] | None] = None

    def _repr_html_(self) -> str | None:
        return None if Plan.drawn is None else Plan.drawn(self)

    @property
    def queries(self) -> Iterator[Planned]:
        """The queries of users; sides of joins are not among them."""
        for tree in self.trees:
            yield from tree.answered
        yield from self.joins
        yield from self.rows

    @property
    def trees(self) -> Iterator[Tree]:
        for partial_set in self.sets:
            yield from partial_set.trees

    @property
    def by_identity(self) -> dict[SetIdentity, PartialSet]:
        """The sets by identity, to match them with those of another plan."""
        return {partial_set.identity: partial_set for partial_set in self.sets}

    def scan_of(self, partial_set: PartialSet) -> Scan | None:
        """Return the scan that feeds a set; None if no tuple can be part of it."""
        scans = (*self.scans, *(relation.scan for relation in self.relations if relation.scan is not None))
        return next((scan for scan in scans if any(fed.number == partial_set.number for fed in scan.feeds)), None)

    def stream(self, name: str) -> Stream:
        """Return the stream, or the enriched one, or the relation, that a scan or a set reads."""
        sources = (*self.streams, *self.enriched, *(planned_relation.relation for planned_relation in self.relations))
        return next(stream for stream in sources if stream.name == name)

    def base_of(self, name: str) -> str:
        """Return the stream whose tuples a stream has: itself, unless it is enriched."""
        return next((enriched_stream.base for enriched_stream in self.enriched if enriched_stream.name == name), name)

    def rate_of(self, stream: Stream) -> tuple[float, Origin]:
        """Return tuples per second of a stream that the plan reads, and where that figure comes from."""
        direct = (partial_set for partial_set in self.sets if partial_set.stream == stream.name)
        based = (partial_set for partial_set in self.sets if partial_set.base == stream.name)
        if (partial_set := next(chain(direct, based), None)) is not None:
            return partial_set.statistics.stream_rate, partial_set.statistics.origins.rate
        for planned in self.rows:
            for strand, rate in zip(planned.rows.strands, planned.rates, strict=True):
                if strand.stream == stream.name:
                    return rate.stream_rate, rate.origin
        given = stream.events_per_second  # no query reads it, but its tuples are kept
        return (DEFAULT_EVENTS_PER_SECOND, ASSUMED) if given is None else (given, GIVEN)

    def store(self, stream: str) -> Retention | None:
        """Return the store of a stream; None if nothing is kept of its tuples."""
        return next((store for store in self.stores if store.stream == stream), None)

    def query(self, name: str) -> Planned:
        """Return the user's query with this name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Planned]:
        # Whoever takes the answers of all queries asks for each of them.
        return {planned.name: planned for planned in self.queries}

    def side(self, place: SidePlace) -> tuple[PartialSet, Tree, Member]:
        """Return where a side of a join is answered."""
        partial_set = self.sets[place.set]
        tree = partial_set.trees[place.tree]
        return partial_set, tree, next(planned for planned in tree.queries if planned.name == place.name)

    def find(self, name: str) -> tuple[PartialSet, Tree, Member]:
        """Return where a query of one stream, or a side, is answered."""
        every = ((each, tree, planned) for each in self.sets for tree in each.trees for planned in tree.queries)
        if (place := next((place for place in every if place[2].name == name), None)) is None:
            raise KeyError(name)
        return place


# Shapes: the names and types of the columns that a query answers with.

#: The type of every expression that queries evaluate on tuples.
Types = Mapping[ExpressionKey, DataType]


def planned_components(components: Iterable[Component], query: Query, types: Types) -> tuple[PlannedComponent, ...]:
    """Components with the types of their arguments, which `query` reads."""
    return tuple(
        PlannedComponent(
            component,
            None if component.argument is None else types[query.key_of(component.argument)],
            tuple(types[query.key_of(other)] for other in component.others),
        )
        for component in components
    )


def shape_of(query: Query, types: Types) -> Shape:
    """Return the answer columns of a query; those of a plain query are reported as the step writes them."""
    group_types = [types[query.key_of(grouping.expression)] for grouping in query.group_by]
    results = [
        aggregate.result_type(None if aggregate.argument is None else types[query.key_of(aggregate.argument)])
        for aggregate in query.aggregates
    ]
    names = [grouping.name for grouping in query.group_by]
    if query.is_plain:
        return Shape(
            tuple(zip(names, group_types, strict=True)),
            tuple((output.name, results[output.aggregate]) for output in query.outputs if output.aggregate is not None),
            emits=query.emission.kind,
        )
    select = [(name, Expression.of_placeholder(f"__g{i}")) for i, name in enumerate(names)]
    select += [
        (output.name, output.expression or Expression.of_placeholder(f"__a{output.aggregate}"))
        for output in query.outputs
    ]
    return Shape(
        tuple((f"__g{i}", type_) for i, type_ in enumerate(group_types)),
        tuple((f"__a{i}", result) for i, result in enumerate(results)),
        tuple(select),
        query.having,
        emits=query.emission.kind,
    )
