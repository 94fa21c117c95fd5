"""The place of everything in the picture: columns from streams to queries and joins, each part beside those it feeds.

Queries decide the height. A tree is in the middle of its queries, a set in the middle of its trees, a scan in the
middle of its sets, a stream in the middle of its scans. Parts that would make the picture too tall to read are drawn
small or counted, never left out silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from windloom.explain.picture.canvas import PALETTE, text_width
from windloom.explain.sharing import asked
from windloom.explain.words import one_line, tree_name
from windloom.model.stream import Stream
from windloom.plan.graph import PlanGraph, ScanNode, SetNode, SourceNode, graph_of
from windloom.plan.plan import Member, PartialSet, Plan, PlannedJoin, Tree
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

    def moved(self, by: float) -> Box:
        return replace(self, y=self.y + by)


_NOWHERE = Box(0.0, 0.0, 0.0, 0.0)


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
    hidden: tuple[Tree, ...] = ()
    rest: tuple[Member, ...] = ()
    rows: tuple[Row, ...] = ()
    card: Box = _NOWHERE
    rest_box: Box = _NOWHERE
    bottom: float = 0.0

    def moved(self, by: float) -> TreeBlock:
        rows = tuple(replace(row, box=row.box.moved(by)) for row in self.rows)
        return replace(self, card=self.card.moved(by), rows=rows, rest_box=self.rest_box.moved(by))


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
#: The distance between scans, or joins, that are below each other.
_CARD_GAP = 14.0


def lay_out(plan: Plan) -> Layout:
    """Return the place of every part of a plan, and what is not drawn."""
    drawn, hidden = plan.sets[:MANY_SETS], plan.sets[MANY_SETS:]
    tree_share = _fair_share([len(partial_set.trees) for partial_set in drawn], MANY_TREES, least=2)
    trees = [tree for partial_set in drawn for tree in partial_set.trees[: _named(len(partial_set.trees), tree_share)]]
    by_window = sum(len(tree.queries) for tree in trees) > MANY_ROWS
    sizes = [len(_bundles(tree.queries, by_window)) for tree in trees]
    row_share = _fair_share(sizes, MANY_ROWS, least=3)
    roomy = sum(_named(size, row_share) for size in sizes) <= ROOMY_ROWS
    small = len(trees) > MANY_CARDS and max(len(partial_set.trees) for partial_set in drawn) > MANY_CARDS_OF_SET
    builder = _Builder(plan, roomy, by_window, tree_share, row_share, small)
    graph, y, blocks = graph_of(plan), TOP, dict[int, SetBlock]()
    sources = _sources(graph, drawn)
    for partial_set in (each for _, sets in sources for each in sets):
        blocks[partial_set.number], y = builder.set_block(partial_set, y)
    streams = _stream_blocks(graph, sources, blocks)
    joins = _join_blocks(plan.joins[:MANY_JOINS], blocks.values(), roomy)
    cards = [*(scan.card for stream in streams for scan in stream.scans), *(join.card for join in joins)]
    bottom = max([y, TOP + 40.0, *(card.y + card.height + 18.0 for card in cards)])
    return Layout(bottom, tuple(streams), roomy, hidden, tuple(joins), plan.joins[MANY_JOINS:])


def _join_blocks(joins: Sequence[PlannedJoin], blocks: Iterable[SetBlock], roomy: bool) -> list[JoinBlock]:
    """Return joins below each other, each as near to the middle of its sides as room allows."""
    drawn: dict[str, Thread] = {}  # where sides are drawn: in rows, among the rest, or in trees that are counted
    for tree in (tree for block in blocks for tree in block.trees):
        for row in tree.rows:
            place = Thread(row.box.right, row_middle(row, roomy), tree.colour)
            drawn |= {planned.name: place for planned in row.queries}
        drawn |= {planned.name: Thread(tree.rest_box.right, tree.rest_box.middle, tree.colour) for planned in tree.rest}
    placed = []
    for join in joins:
        threads = tuple(drawn[place.name] for place in join.sides if place.name in drawn)
        placed.append((fmean([thread.y for thread in threads] or [TOP]), join.name, join, threads))
    placed.sort(key=lambda each: each[:2])
    tops = _stacked([middle for middle, *_ in placed], JOIN_HEIGHT)
    return [
        JoinBlock(join, Box(JOIN_X, top, JOIN_WIDTH, JOIN_HEIGHT), threads)
        for top, (_, _, join, threads) in zip(tops, placed, strict=True)
    ]


def _sources(graph: PlanGraph, drawn: Sequence[PartialSet]) -> list[tuple[SourceNode, list[PartialSet]]]:
    """Return the streams and relations that drawn sets read, and their sets by scan, so that no thread crosses others.

    Streams are in the order of their first sets.
    """
    sources = []
    for name in dict.fromkeys(partial_set.stream for partial_set in drawn):
        source = graph.source(name)
        nodes = [node for scan in graph.consumers_of(source) for node in (scan, *graph.consumers_of(scan))]
        fed = {node.partial_set.number: place for place, node in enumerate(nodes) if isinstance(node, SetNode)}
        sets = [partial_set for partial_set in drawn if partial_set.stream == name]
        sources.append((source, sorted(sets, key=lambda each: fed.get(each.number, len(nodes)))))
    return sources


def _stream_blocks(
    graph: PlanGraph, sources: Sequence[tuple[SourceNode, list[PartialSet]]], blocks: dict[int, SetBlock]
) -> list[StreamBlock]:
    """Return the streams of drawn sets with their scans, including those that only count late tuples."""
    placed: list[tuple[float, ScanNode, tuple[SetBlock, ...]]] = []
    sets = {source.id: tuple(blocks[each.number] for each in own) for source, own in sources}
    for source, _ in sources:
        for node in graph.consumers_of(source):
            fed = [each.partial_set.number for each in graph.consumers_of(node) if isinstance(each, SetNode)]
            drawn = tuple(blocks[number] for number in fed if number in blocks)
            if isinstance(node, ScanNode) and (drawn or not fed):
                placed.append((_middle(drawn or sets[source.id]), node, drawn))
    placed.sort(key=lambda each: (each[0], each[1].scan.number))
    tops = _stacked([middle for middle, _, _ in placed], SCAN_HEIGHT)
    scans = [
        ScanBlock(node.scan, Box(SCAN_X, top, SCAN_WIDTH, SCAN_HEIGHT), drawn)
        for top, (_, node, drawn) in zip(tops, placed, strict=True)
    ]
    streams = []
    for source, _ in sources:
        own = tuple(scan for scan in scans if scan.scan.stream == source.stream.name)
        y = _middle(own or sets[source.id]) - STREAM_HEIGHT / 2
        card = Box(STREAM_X, y, STREAM_WIDTH, STREAM_HEIGHT)
        streams.append(StreamBlock(source.stream, card, own, sets[source.id]))
    return streams


def _middle(blocks: Sequence[ScanBlock] | Sequence[SetBlock]) -> float:
    return (blocks[0].card.middle + blocks[-1].card.middle) / 2


def _stacked(middles: Sequence[float], height: float) -> list[float]:
    """Return the tops of cards of a height in a column, each as near as possible to the wanted middle."""
    tops = [middle - height / 2 for middle in _spread(middles, height + _CARD_GAP)]
    shift = max([0.0, *(TOP - top for top in tops[:1])])
    return [top + shift for top in tops]


def _spread(wanted: Sequence[float], step: float) -> list[float]:
    """Return places in order, at least a step from each other, that are as near as possible to the wanted ones.

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
    """Return the largest share for each, so that all together stay within the budget."""
    share = max([least, *sizes])
    while share > least and sum(min(size, share) for size in sizes) > budget:
        share -= 1
    return share


def _named(size: int, share: int) -> int:
    """Return how many are drawn one by one; the rest takes the place of the last one, and is never a single one."""
    return size if size <= share else share - 1


def _bundles(queries: Iterable[Member], by_window: bool) -> list[tuple[Member, ...]]:
    """Return queries by length of their windows; if there are many, those with the same window are put together."""
    groups: dict[object, list[Member]] = {}
    for planned in sorted(queries, key=lambda planned: (planned.query.window, planned.name)):
        groups.setdefault(planned.query.window if by_window else planned.name, []).append(planned)
    return [tuple(group) for group in groups.values()]


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

    def set_block(self, partial_set: PartialSet, top: float) -> tuple[SetBlock, float]:
        y, trees, gap = top, [], 6.0 if self.small_trees else 18.0
        named = _named(len(partial_set.trees), self.tree_share)
        for tree in partial_set.trees[:named]:
            trees.append(self._tree_block(partial_set, tree, y))
            y = trees[-1].bottom + gap
        if hidden := partial_set.trees[named:]:
            members = _bundles((planned for tree in hidden for planned in tree.queries), by_window=False)
            rest = tuple(planned for bundle in members for planned in bundle)
            block = TreeBlock(None, f"+ {len(hidden):,} more trees", "#94a3b8", hidden=hidden, rest=rest)
            trees.append(self._placed(block, [], 26.0, SMALL_TREE_EXTRA, y))
            y = trees[-1].bottom + gap
        chips, chips_height = self._chips(partial_set)
        height = 52.0 + chips_height + strip_height(len(partial_set.trees)) + 46.0
        bottom = max(y, top + height + 18.0)
        shift = (bottom - 18.0 - (y - gap)) / 2
        if shift > 0:
            trees = [block.moved(shift) for block in trees]
        middle = (trees[0].card.middle + trees[-1].card.middle) / 2
        # A tall column of trees must not push the card out of the set's own space.
        card_y = min(max(middle - height / 2, top), bottom - height - 18.0)
        placed = tuple(replace(chip, y=chip.y + card_y) for chip in chips)
        card = Box(SET_X, card_y, SET_WIDTH, height)
        return SetBlock(partial_set, card, placed, card_y + 52.0 + chips_height, tuple(trees)), bottom + 10.0

    def _tree_block(self, partial_set: PartialSet, tree: Tree, top: float) -> TreeBlock:
        bundles = _bundles(tree.queries, self.by_window)
        shown = _named(len(bundles), self.row_share)
        named = {index * len(bundles) // shown for index in range(shown)}  # spread over short and long windows
        rest = tuple(planned for index, bundle in enumerate(bundles) if index not in named for planned in bundle)
        colour = PALETTE[self.drawn_trees % len(PALETTE)]
        self.drawn_trees += 1
        block = TreeBlock(tree, tree_name(self.plan, partial_set, tree), colour, rest=rest)
        rows = [bundle for index, bundle in enumerate(bundles) if index in named]
        if self.small_trees:
            return self._placed(block, rows, 26.0, SMALL_TREE_EXTRA, top)
        return self._placed(block, rows, 88.0 + 15.0 * (len(used_techniques(partial_set, tree)) > 1), 0.0, top)

    def _placed(
        self, block: TreeBlock, bundles: Sequence[tuple[Member, ...]], card_height: float, wider: float, top: float
    ) -> TreeBlock:
        """Return the block with its card, rows and rest at their places, from `top` downwards."""
        row_height = 34.0 if self.roomy else 18.0
        lines, pitch = rest_lines(block.rest)
        rest_height = 24.0 + lines * pitch if block.rest else 0.0
        inner = len(bundles) * row_height + rest_height
        height = max(inner, card_height)
        y = top + (height - inner) / 2 + (4.0 if self.roomy else 0.0)  # the first line, not the row, is in the middle
        boxes = [Box(QUERY_X, y + row_height * row, QUERY_WIDTH, row_height) for row in range(len(bundles))]
        return replace(
            block,
            card=Box(TREE_X - wider, top + (height - card_height) / 2, TREE_WIDTH + wider, card_height),
            rows=tuple(map(Row, boxes, bundles)),
            rest_box=Box(QUERY_X, y + len(bundles) * row_height, QUERY_WIDTH, rest_height),
            bottom=top + height,
        )

    def _chips(self, partial_set: PartialSet) -> tuple[list[Chip], float]:
        """Return the components in at most two lines, relative to the card's top, and their height."""
        wanted = asked(partial_set.queries)
        chips: list[Chip] = []
        left, end, line = SET_X + 14.0, SET_X + SET_WIDTH - 14.0, 0
        x, y = left, 50.0
        for index, planned in enumerate(partial_set.components):
            uses, more = wanted[planned.component], len(partial_set.components) - index
            text = one_line(str(planned.component)) + (f" ×{uses:,}" if uses > 1 else "")
            width = min(text_width(text, CHIP_SIZE) + 14.0, 180.0)
            if x + width > end - (52.0 if line == 1 and more > 1 else 0.0):
                if line == 1:
                    chips.append(Chip(f"+{more}", x, y, text_width(f"+{more}", CHIP_SIZE) + 14.0))
                    break
                x, y, line = left, y + CHIP_HEIGHT + 5.0, 1
            chips.append(Chip(text, x, y, width))
            x += width + 6.0
        return chips, (line + 1) * (CHIP_HEIGHT + 5.0) + 8.0


def used_techniques(partial_set: PartialSet, tree: Tree) -> list[str]:
    """Return the techniques that answer something in a tree."""
    wanted = {component for planned in tree.queries for component in planned.query.components}
    pairs = zip(partial_set.components, tree.techniques, strict=True)
    return list(dict.fromkeys(technique for part, technique in pairs if part.component in wanted))


def row_middle(row: Row, roomy: bool) -> float:
    """Return the height at which the first line of a row is."""
    return row.box.y + (13.0 if roomy else row.box.height / 2)


def strip_height(trees: int) -> float:
    """Return the height of a strip: the slices of the set, and below them those of its trees if there are several."""
    return 24.0 if trees == 1 else 16.0 + 3.0 + STRIP_ROW * min(trees, SHOWN_STRIP_TREES)


def rest_lines(rest: Sequence[Member]) -> tuple[int, float]:
    """Return the number of thin lines that stand for the unnamed queries, and the distance between them."""
    lines = min(len(rest), int(REST_HEIGHT))
    return lines, min(_REST_PITCH, max(1.0, REST_HEIGHT / max(1, lines)))
