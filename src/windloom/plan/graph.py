"""The plan as a graph: streams → scans → sets → trees → folds → answers, in which every node knows its inputs.

Only joins have a fold, which takes a tree for each of their sides. A relation feeds either sets directly or streams
that are enriched with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from windloom.model.stream import EnrichedStream, Stream
from windloom.plan.plan import PartialSet, Plan, PlannedJoin, PlannedQuery, PlannedRelation, Tree
from windloom.plan.rows import PlannedRows
from windloom.plan.scans import NativeFeed, NativeScan, Scan, WovenScan


@dataclass(frozen=True, slots=True)
class PlanNode:
    """A part of a plan, and the parts that it reads.

    `id` is unique in a plan, and `inputs` are ids of nodes that stand before this one.
    """

    kind: ClassVar[str]
    id: str
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamNode(PlanNode):
    """A stream, from which tuples come."""

    kind: ClassVar[str] = "stream"
    stream: Stream


@dataclass(frozen=True, slots=True)
class RelationNode(PlanNode):
    """A relation, from which rows without a time come."""

    kind: ClassVar[str] = "relation"
    stream: Stream
    planned: PlannedRelation


@dataclass(frozen=True, slots=True)
class EnrichedNode(PlanNode):
    """The tuples of a stream, joined with relations as they come in."""

    kind: ClassVar[str] = "enriched"
    stream: EnrichedStream


#: The nodes that scans and sets read.
SourceNode = StreamNode | RelationNode | EnrichedNode


@dataclass(frozen=True, slots=True)
class ScanNode(PlanNode):
    """One reading of a stream."""

    kind: ClassVar[str] = "scan"
    scan: Scan


@dataclass(frozen=True, slots=True)
class SetNode(PlanNode):
    """The cells of one partial set; it has no inputs if no tuple can be part of it."""

    kind: ClassVar[str] = "set"
    partial_set: PartialSet


@dataclass(frozen=True, slots=True)
class TreeNode(PlanNode):
    """Queries that are answered from common slices of their own."""

    kind: ClassVar[str] = "tree"
    partial_set: PartialSet
    tree: Tree


@dataclass(frozen=True, slots=True)
class FoldNode(PlanNode):
    """The sides of one join, multiplied and added up."""

    kind: ClassVar[str] = "fold"
    planned: PlannedJoin


@dataclass(frozen=True, slots=True)
class RowsNode(PlanNode):
    """The rows of one row query, made of tuples."""

    kind: ClassVar[str] = "rows"
    planned: PlannedRows


@dataclass(frozen=True, slots=True)
class AnswerNode(PlanNode):
    """The answers of one query, which go to the table of its shape."""

    kind: ClassVar[str] = "answer"
    planned: PlannedQuery | PlannedJoin | PlannedRows


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """The nodes of a plan and their links.

    `nodes` stand in an order in which every node follows its inputs.
    """

    nodes: tuple[PlanNode, ...]
    _by_id: dict[str, PlanNode] = field(init=False, repr=False, compare=False)
    _consumers: dict[str, list[PlanNode]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_id: dict[str, PlanNode] = {}
        consumers: dict[str, list[PlanNode]] = {}
        for node in self.nodes:
            assert node.id not in by_id, f"two nodes are called {node.id}"
            assert all(each in by_id for each in node.inputs), f"{node.id} stands before one of its inputs"
            by_id[node.id] = node
            consumers[node.id] = []
            for each in node.inputs:
                consumers[each].append(node)
        object.__setattr__(self, "_by_id", by_id)
        object.__setattr__(self, "_consumers", consumers)

    def __getitem__(self, node_id: str) -> PlanNode:
        return self._by_id[node_id]

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Every pair of a node and one that takes it as an input."""
        return tuple((each, node.id) for node in self.nodes for each in node.inputs)

    @property
    def roots(self) -> tuple[PlanNode, ...]:
        return tuple(node for node in self.nodes if not node.inputs)

    def source(self, name: str) -> SourceNode:
        """Return the node that a scan or a set of this stream, or relation, reads."""
        sources = (node for node in self.nodes if isinstance(node, SourceNode))
        return next(node for node in sources if node.stream.name == name)

    def inputs_of(self, node: PlanNode) -> tuple[PlanNode, ...]:
        return tuple(self._by_id[each] for each in node.inputs)

    def consumers_of(self, node: PlanNode) -> tuple[PlanNode, ...]:
        return tuple(self._consumers[node.id])

    def behind(self, node: PlanNode) -> tuple[PlanNode, ...]:
        """Return the nodes that a node feeds, directly or through others."""
        reached: dict[str, PlanNode] = {}
        waiting = list(self._consumers[node.id])
        while waiting:
            other = waiting.pop()
            if other.id not in reached:
                reached[other.id] = other
                waiting += self._consumers[other.id]
        return tuple(other for other in self.nodes if other.id in reached)


def graph_of(plan: Plan) -> PlanGraph:
    nodes: list[PlanNode] = [StreamNode(f"stream:{stream.name}", (), stream) for stream in plan.streams]
    fed_by: dict[int, str] = {}
    for relation in plan.relations:
        nodes.append(RelationNode(f"relation:{relation.name}", (), relation.relation, relation))
        feeds = () if relation.scan is None else relation.scan.feeds
        fed_by.update({fed.number: f"relation:{relation.name}" for fed in feeds})
    sources = {stream.name: f"stream:{stream.name}" for stream in plan.streams}
    for enriched in plan.enriched:
        sources[enriched.name] = f"enriched:{enriched.name}"
        read = (f"stream:{enriched.base}", *(f"relation:{name}" for name in enriched.relations))
        nodes.append(EnrichedNode(sources[enriched.name], read, enriched))
    for scan in plan.scans:
        fed_by.update({fed.number: f"scan:{scan.number}" for fed in scan.feeds})
        nodes.append(ScanNode(f"scan:{scan.number}", (sources[scan.stream],), scan))
    trees, answers = list[PlanNode](), list[PlanNode]()
    for partial_set in plan.sets:
        number = partial_set.number
        nodes.append(SetNode(f"set:{number}", (fed_by[number],) if number in fed_by else (), partial_set))
        for tree in partial_set.trees:
            tree_id = f"tree:{number}.{tree.number}"
            trees.append(TreeNode(tree_id, (f"set:{number}",), partial_set, tree))
            answers += [AnswerNode(f"answer:{planned.name}", (tree_id,), planned) for planned in tree.answered]
    nodes += trees + answers
    for join in plan.joins:
        inputs = dict.fromkeys(f"tree:{place.set}.{place.tree}" for place in join.sides)
        nodes.append(FoldNode(f"fold:{join.name}", tuple(inputs), join))
        nodes.append(AnswerNode(f"answer:{join.name}", (f"fold:{join.name}",), join))
    for rows in plan.rows:
        nodes.append(RowsNode(f"rows:{rows.name}", tuple(sources[name] for name in rows.query.streams), rows))
        nodes.append(AnswerNode(f"answer:{rows.name}", (f"rows:{rows.name}",), rows))
    return PlanGraph(tuple(nodes))


# The conditions that a scan tests on every tuple, by their canonical SQL, and the bit of each in its signature.


def conditions_of(plan: Plan, scan: Scan) -> dict[str, int]:
    """Return the bit of every predicate of a set and condition of a FILTER that has one, by SQL."""
    watched = () if isinstance(scan, NativeScan) else scan.watched
    bit_of = {}
    for number, bit in [*((fed.number, fed.bit) for fed in scan.feeds), *watched]:
        predicate = plan.sets[number].predicate
        if predicate is not None and bit is not None:
            bit_of[predicate.sql] = bit
    if isinstance(scan, WovenScan) and scan.kept is not None:
        bit_of |= {sql: bit for sql, bit in scan.kept.conditions if bit is not None}
    for fed in scan.feeds:
        filters = fed.filters if isinstance(fed, NativeFeed) else [read.filter for read in fed.components]
        for planned, bit in zip(plan.sets[fed.number].components, filters, strict=True):
            if planned.component.where is not None and bit is not None:
                bit_of[planned.component.where.sql] = bit
    return bit_of
