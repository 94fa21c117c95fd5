"""The place of everything in the picture: columns from streams to queries and joins, each part beside those it feeds.

Queries decide the height. A tree is in the middle of its queries, a set in the middle of its trees, a scan in the
middle of its sets, a stream in the middle of its scans. Parts that would make the picture too tall to read are drawn
small or counted, never left out silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from windloom.explain.picture.canvas import PALETTE, text_width
from windloom.explain.sharing import asked
from windloom.explain.words import one_line, tree_name
from windloom.model.stream import Stream
from windloom.plan.graph import PlanGraph, ScanNode, SetNode, SourceNode, graph_of, set_id
from windloom.plan.physical import Member, PartialSet, Plan, PlannedJoin, Tree
from windloom.plan.scans import Scan

MARGIN = 28.0
TOP = 132.0
STREAM_X, STREAM_WIDTH, STREAM_HEIGHT = MARGIN, 164.0, 92.0
SCAN_X, SCAN_WIDTH, SCAN_HEIGHT = 242.0, 164.0, 92.0
SET_X, SET_WIDTH = 456.0, 400.0
TREE_X, TREE_WIDTH = 986.0, 196.0
#: A tree drawn as one line reaches further left, because its rate is inside.
SMALL_TREE_EXTRA = 72.0
QUERY_X, QUERY_WIDTH = 1262.0, 420.0
WIDTH = QUERY_X + QUERY_WIDTH + MARGIN
#: Joins have a column of their own.
JOIN_X, JOIN_WIDTH, JOIN_HEIGHT = QUERY_X + QUERY_WIDTH + 90.0, 250.0, 92.0
#: Inside a row: the name, the window in words, and the window as a line.
NAME_WIDTH, WINDOW_WIDTH, LINE_WIDTH = 142.0, 120.0, 140.0
CHIP_SIZE = 10.5
CHIP_HEIGHT = 18.0
STRIP_ROW = 9.0
SHOWN_STRIP_TREES = 8


@dataclass(frozen=True, slots=True)
class Box:
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the last column: a query, or all queries of a tree with the same window."""

    box: Box
    queries: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class TreeBlock:
    """A tree with its queries, or (`tree` is None) all trees of a set that are not drawn one by one."""

    tree: Tree | None
    name: str
    colour: str
    card: Box
    rows: tuple[Row, ...]
    rest: tuple[Member, ...]
    rest_box: Box
    hidden: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Chip:
    text: str
    x: float
    y: float
    width: float


@dataclass(frozen=True, slots=True)
class SetBlock:
    partial_set: PartialSet
    card: Box
    chips: tuple[Chip, ...]
    strip_y: float
    trees: tuple[TreeBlock, ...]


@dataclass(frozen=True, slots=True)
class ScanBlock:
    """A scan with those of its sets that are drawn."""

    scan: Scan
    card: Box
    sets: tuple[SetBlock, ...]


@dataclass(frozen=True, slots=True)
class StreamBlock:
    """A stream with its scans; `sets` are all its drawn sets, including those that no scan feeds."""

    stream: Stream
    card: Box
    scans: tuple[ScanBlock, ...]
    sets: tuple[SetBlock, ...]


@dataclass(frozen=True, slots=True)
class Thread:
    """A line from a drawn side to the join that folds it, in the colour of the side's tree."""

    x: float
    y: float
    colour: str


@dataclass(frozen=True, slots=True)
class JoinBlock:
    """A join with the threads of those of its sides that are drawn."""

    join: PlannedJoin
    card: Box
    threads: tuple[Thread, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    height: float
    streams: tuple[StreamBlock, ...]
    roomy: bool
    hidden_sets: tuple[PartialSet, ...]
    joins: tuple[JoinBlock, ...] = ()
    hidden_joins: tuple[PlannedJoin, ...] = ()

    @property
    def width(self) -> float:
        return JOIN_X + JOIN_WIDTH + MARGIN if self.joins else WIDTH


#: Named rows, trees, sets and joins in one picture; the rest is drawn as thin lines, or counted.
MANY_ROWS, MANY_TREES, MANY_SETS, MANY_JOINS = 40, 24, 12, 24
#: Up to this many rows there is room for a second line with the columns of the answer.
ROOMY_ROWS = 24
#: Strip of unnamed queries: its height, and the thinnest line.
REST_HEIGHT = 150.0
_REST_PITCH = 5.0
#: Up to this many trees, or this many in every set, a tree is drawn as a card; beyond that, as a line.
MANY_CARDS, MANY_CARDS_OF_SET = 10, 2
#: The distance between scans that are below each other.
_SCAN_GAP = 14.0


def lay_out(plan: Plan) -> Layout:
    drawn, hidden = plan.sets[:MANY_SETS], plan.sets[MANY_SETS:]
    tree_share = _fair_share([len(partial_set.trees) for partial_set in drawn], MANY_TREES, least=2)
    trees = [tree for partial_set in drawn for tree in partial_set.trees[: _kept(len(partial_set.trees), tree_share)]]
    by_window = sum(len(tree.queries) for tree in trees) > MANY_ROWS
    sizes = [len(_bundles(tree, by_window)) for tree in trees]
    row_share = _fair_share(sizes, MANY_ROWS, least=3)
    roomy = sum(_kept(size, row_share) for size in sizes) <= ROOMY_ROWS
    small = len(trees) > MANY_CARDS and max(len(partial_set.trees) for partial_set in drawn) > MANY_CARDS_OF_SET
    builder = _Builder(plan, roomy, by_window, tree_share, row_share, small)
    graph = graph_of(plan)
    y = TOP
    blocks: dict[int, SetBlock] = {}
    for partial_set in _beside_their_scans(graph, drawn):
        blocks[partial_set.number], y = builder.set_block(partial_set, y)
    scans = _scan_blocks(graph, blocks)
    streams = tuple(_stream_blocks(graph, scans, blocks))
    joins = _join_blocks(plan.joins[:MANY_JOINS], blocks.values(), roomy)
    cards = [*(scan.card for scan in scans), *(join.card for join in joins)]
    bottom = max([y, TOP + 40.0, *(card.y + card.height + 18.0 for card in cards)])
    return Layout(bottom, streams, roomy, hidden, tuple(joins), plan.joins[MANY_JOINS:])


def _join_blocks(joins: Sequence[PlannedJoin], blocks: Iterable[SetBlock], roomy: bool) -> list[JoinBlock]:
    """Joins below each other, each as near to the middle of its sides as room allows."""
    drawn = {name: thread for block in blocks for tree in block.trees for name, thread in _threads_of(tree, roomy)}
    threads = [tuple(drawn[place.name] for place in join.sides if place.name in drawn) for join in joins]
    wanted = [fmean([thread.y for thread in own] or [TOP]) for own in threads]
    order = sorted(range(len(joins)), key=lambda number: (wanted[number], joins[number].name))
    middles = _spread([wanted[number] for number in order], JOIN_HEIGHT + _SCAN_GAP)
    shift = max([0.0, *(TOP + JOIN_HEIGHT / 2 - middle for middle in middles[:1])])
    return [
        JoinBlock(
            joins[number],
            Box(JOIN_X, middle + shift - JOIN_HEIGHT / 2, JOIN_WIDTH, JOIN_HEIGHT),
            threads[number],
        )
        for number, middle in zip(order, middles, strict=True)
    ]


def _threads_of(tree: TreeBlock, roomy: bool) -> Iterator[tuple[str, Thread]]:
    """Where the sides of a tree are drawn, by name: in rows, among the rest, or in trees that are counted."""
    for row in tree.rows:
        for planned in row.queries:
            yield planned.name, Thread(row.box.right, row_middle(row, roomy), tree.colour)
    for planned in tree.rest:
        yield planned.name, Thread(tree.rest_box.right, tree.rest_box.middle, tree.colour)


def _beside_their_scans(graph: PlanGraph, drawn: Sequence[PartialSet]) -> list[PartialSet]:
    """The drawn sets, ordered by stream and scan, so that no thread crosses another."""
    numbers = {partial_set.number for partial_set in drawn}
    found: dict[int, PartialSet] = {}
    for stream in _streams(graph, drawn):
        fed = [node for scan in graph.consumers_of(stream) for node in (scan, *graph.consumers_of(scan))]
        own = [node.partial_set for node in fed if isinstance(node, SetNode)]
        own = [partial_set for partial_set in own if partial_set.stream == stream.stream.name]
        unfed = [
            partial_set
            for partial_set in drawn
            if partial_set.stream == stream.stream.name and not graph[set_id(partial_set)].inputs
        ]
        found.update(
            {partial_set.number: partial_set for partial_set in (*own, *unfed) if partial_set.number in numbers}
        )
    return list(found.values())


def _streams(graph: PlanGraph, drawn: Iterable[PartialSet]) -> list[SourceNode]:
    """The streams and relations that drawn sets read, in the order of the sets."""
    return [graph.source(name) for name in dict.fromkeys(partial_set.stream for partial_set in drawn)]


def _scan_blocks(graph: PlanGraph, blocks: dict[int, SetBlock]) -> list[ScanBlock]:
    """Scans of drawn sets, and those that feed no set at all: they count late tuples."""
    found: list[tuple[float, ScanNode, tuple[SetBlock, ...]]] = []
    for stream in _streams(graph, (block.partial_set for block in blocks.values())):
        own = [block for block in blocks.values() if block.partial_set.stream == stream.stream.name]
        for node in graph.consumers_of(stream):
            fed = [each.partial_set.number for each in graph.consumers_of(node) if isinstance(each, SetNode)]
            sets = tuple(blocks[number] for number in fed if number in blocks)
            if isinstance(node, ScanNode) and (sets or not fed):
                found.append((_middle(sets or own), node, sets))
    found.sort(key=lambda each: (each[0], each[1].scan.number))
    middles = _spread([middle for middle, _, _ in found], SCAN_HEIGHT + _SCAN_GAP)
    shift = max([0.0, *(TOP + SCAN_HEIGHT / 2 - middle for middle in middles[:1])])
    return [
        ScanBlock(node.scan, Box(SCAN_X, middle + shift - SCAN_HEIGHT / 2, SCAN_WIDTH, SCAN_HEIGHT), sets)
        for middle, (_, node, sets) in zip(middles, found, strict=True)
    ]


def _stream_blocks(graph: PlanGraph, scans: Sequence[ScanBlock], blocks: dict[int, SetBlock]) -> Iterator[StreamBlock]:
    for node in _streams(graph, (block.partial_set for block in blocks.values())):
        own = tuple(scan for scan in scans if scan.scan.stream == node.stream.name)
        sets = tuple(block for block in blocks.values() if block.partial_set.stream == node.stream.name)
        y = _middle(own or sets) - STREAM_HEIGHT / 2
        yield StreamBlock(node.stream, Box(STREAM_X, y, STREAM_WIDTH, STREAM_HEIGHT), own, sets)


def _middle(blocks: Sequence[ScanBlock] | Sequence[SetBlock]) -> float:
    return (blocks[0].card.middle + blocks[-1].card.middle) / 2


def _spread(wanted: Sequence[float], step: float) -> list[float]:
    """Places in order, at least a step from each other, that are as near as possible to the wanted ones.

    >>> _spread([0, 10, 50], 20), _spread([5, 5], 20)
    ([-5.0, 15.0, 50.0], [-5.0, 15.0])
    """
    groups: list[list[float]] = []  # of neighbours that touch: where each of them wants the first to be
    for number, place in enumerate(wanted):
        groups.append([place - number * step])
        while len(groups) > 1 and fmean(groups[-2]) > fmean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    firsts = [fmean(group) for group in groups for _ in group]
    return [first + number * step for number, first in enumerate(firsts)]


def _fair_share(sizes: Sequence[int], budget: int, least: int) -> int:
    """The largest share for each, so that all together stay within the budget."""
    share = max([least, *sizes])
    while share > least and sum(min(size, share) for size in sizes) > budget:
        share -= 1
    return share


def _kept(size: int, share: int) -> int:
    """The number that are drawn one by one; the rest takes the place of the last one, and is never a single one."""
    return size if size <= share else share - 1


def _bundles(tree: Tree, by_window: bool) -> list[tuple[Member, ...]]:
    """A tree's queries by length of their windows; if there are many, those with the same window are put together."""
    ordered = _by_length(tree.queries)
    if not by_window:
        return [(planned,) for planned in ordered]
    groups: dict[object, list[Member]] = {}
    for planned in ordered:
        groups.setdefault(planned.query.window, []).append(planned)
    return [tuple(group) for group in groups.values()]


def _by_length(queries: Iterable[Member]) -> list[Member]:
    return sorted(queries, key=lambda planned: (planned.query.window, planned.name))


@dataclass
class _Builder:
    """Stacks blocks from the top; every method returns a block and the y below it."""

    plan: Plan
    roomy: bool
    by_window: bool
    tree_share: int
    row_share: int
    small_trees: bool
    drawn_trees: int = 0

    @property
    def gap(self) -> float:
        """The distance between trees."""
        return 6.0 if self.small_trees else 18.0

    def set_block(self, partial_set: PartialSet, top: float) -> tuple[SetBlock, float]:
        y = top
        trees = []
        kept = _kept(len(partial_set.trees), self.tree_share)
        for tree in partial_set.trees[:kept]:
            block, y = self.tree_block(partial_set, tree, y)
            trees.append(block)
        hidden = partial_set.trees[kept:]
        if hidden:
            queries = tuple(_by_length(planned for tree in hidden for planned in tree.queries))
            block, y = self._stack(
                partial_set, None, f"+ {len(hidden):,} more trees", "#94a3b8", [], queries, hidden, y
            )
            trees.append(block)
        chips, chips_height = self._chips(partial_set)
        height = 52.0 + chips_height + strip_height(len(partial_set.trees)) + 46.0
        bottom = max(y, top + height + 18.0)
        shift = (bottom - 18.0 - (y - self.gap)) / 2
        if shift > 0:
            trees = [_moved(block, shift) for block in trees]
        middle = (trees[0].card.middle + trees[-1].card.middle) / 2
        # A tall column of trees must not push the card out of the set's own space.
        card_y = min(max(middle - height / 2, top), bottom - height - 18.0)
        card = Box(SET_X, card_y, SET_WIDTH, height)
        placed = tuple(Chip(chip.text, chip.x, chip.y + card_y, chip.width) for chip in chips)
        return SetBlock(partial_set, card, placed, card_y + 52.0 + chips_height, tuple(trees)), bottom + 10.0

    def tree_block(self, partial_set: PartialSet, tree: Tree, top: float) -> tuple[TreeBlock, float]:
        bundles = _bundles(tree, self.by_window)
        kept = _kept(len(bundles), self.row_share)
        named = {index * len(bundles) // kept for index in range(kept)}  # spread over short and long windows
        rest = tuple(planned for index, bundle in enumerate(bundles) if index not in named for planned in bundle)
        shown = [bundle for index, bundle in enumerate(bundles) if index in named]
        colour = PALETTE[self.drawn_trees % len(PALETTE)]
        self.drawn_trees += 1
        return self._stack(partial_set, tree, tree_name(self.plan, partial_set, tree), colour, shown, rest, (), top)

    def _stack(
        self,
        partial_set: PartialSet,
        tree: Tree | None,
        name: str,
        colour: str,
        bundles: list[tuple[Member, ...]],
        rest: tuple[Member, ...],
        hidden: tuple[Tree, ...],
        top: float,
    ) -> tuple[TreeBlock, float]:
        row_height = 34.0 if self.roomy else 18.0
        small = self.small_trees or tree is None
        card_height = 26.0
        if tree is not None and not small:
            card_height = 88.0 + (15.0 if len(used_techniques(partial_set, tree)) > 1 else 0.0)
        rest_height = 24.0 + rest_lines(rest)[0] * rest_lines(rest)[1] if rest else 0.0
        inner = len(bundles) * row_height + rest_height
        height = max(inner, card_height)
        y = top + (height - inner) / 2 + (4.0 if self.roomy else 0.0)  # the first line, not the row, is in the middle
        rows = []
        for bundle in bundles:
            rows.append(Row(Box(QUERY_X, y, QUERY_WIDTH, row_height), bundle))
            y += row_height
        wider = SMALL_TREE_EXTRA if small else 0.0
        card = Box(TREE_X - wider, top + (height - card_height) / 2, TREE_WIDTH + wider, card_height)
        rest_box = Box(QUERY_X, y, QUERY_WIDTH, rest_height)
        return TreeBlock(tree, name, colour, card, tuple(rows), rest, rest_box, hidden), top + height + self.gap

    def _chips(self, partial_set: PartialSet) -> tuple[list[Chip], float]:
        """Components in at most two lines; coordinates relative to the card's top."""
        wanted = asked(partial_set)
        chips: list[Chip] = []
        x, y, line = SET_X + 14.0, 50.0, 0
        end = SET_X + SET_WIDTH - 14.0
        for index, planned in enumerate(partial_set.components):
            uses = wanted[planned.component]
            text = one_line(str(planned.component)) + (f" ×{uses:,}" if uses > 1 else "")
            width = min(text_width(text, CHIP_SIZE) + 14.0, 180.0)
            more = len(partial_set.components) - index
            room = end - (52.0 if line == 1 and more > 1 else 0.0)
            if x + width > room:
                if line == 1:
                    chips.append(Chip(f"+{more}", x, y, text_width(f"+{more}", CHIP_SIZE) + 14.0))
                    break
                x, y, line = SET_X + 14.0, y + CHIP_HEIGHT + 5.0, 1
            chips.append(Chip(text, x, y, width))
            x += width + 6.0
        return chips, (line + 1) * (CHIP_HEIGHT + 5.0) + 8.0


def used_techniques(partial_set: PartialSet, tree: Tree) -> list[str]:
    """The techniques that answer something in a tree."""
    wanted = {component for planned in tree.queries for component in planned.query.components}
    pairs = zip(partial_set.components, tree.techniques, strict=True)
    return list(dict.fromkeys(technique for part, technique in pairs if part.component in wanted))


def row_middle(row: Row, roomy: bool) -> float:
    """The height at which the first line of a row is."""
    return row.box.y + (13.0 if roomy else row.box.height / 2)


def strip_height(trees: int) -> float:
    """The height of a strip: the slices of the set, and below them those of its trees if there are several."""
    return 24.0 if trees == 1 else 16.0 + 3.0 + STRIP_ROW * min(trees, SHOWN_STRIP_TREES)


def rest_lines(rest: Sequence[Member]) -> tuple[int, float]:
    """The number of thin lines that stand for the unnamed queries, and the distance between them."""
    lines = min(len(rest), int(REST_HEIGHT))
    return lines, min(_REST_PITCH, max(1.0, REST_HEIGHT / max(1, lines)))


def _moved(block: TreeBlock, by: float) -> TreeBlock:
    def down(box: Box) -> Box:
        return Box(box.x, box.y + by, box.width, box.height)

    rows = tuple(Row(down(row.box), row.queries) for row in block.rows)
    return TreeBlock(
        block.tree, block.name, block.colour, down(block.card), rows, block.rest, down(block.rest_box), block.hidden
    )
