"""Where everything in the picture stands: four columns, each thing beside what it feeds.

Queries decide the height. A tree stands in the middle of its queries, a set in the middle of its trees, a stream in
the middle of its sets. What would make the picture too tall to read is drawn small or counted, never left out silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from windloom.explain.canvas import PALETTE, text_width
from windloom.explain.reasons import asked, tree_name
from windloom.explain.words import one_line
from windloom.model.stream import Stream
from windloom.plan.physical import PartialSet, Plan, PlannedQuery, Tree

#: Named rows, trees and sets in one picture; the rest is drawn as thin lines, or counted.
MANY_ROWS, MANY_TREES, MANY_SETS = 40, 24, 12
#: Up to this many rows there is room for a second line with the columns of the answer.
ROOMY_ROWS = 24
#: Strip of unnamed queries: its height, and the thinnest line.
REST_HEIGHT = 150.0
_REST_PITCH = 5.0
#: Up to this many trees, or this many in every set, a tree is drawn as a card, beyond as a line.
MANY_CARDS, MANY_CARDS_OF_SET = 10, 2

MARGIN = 28.0
TOP = 132.0
STREAM_X, STREAM_WIDTH, STREAM_HEIGHT = MARGIN, 172.0, 92.0
SET_X, SET_WIDTH = 262.0, 400.0
TREE_X, TREE_WIDTH = 792.0, 196.0
#: A tree drawn as one line reaches further left, since its rate stands inside.
SMALL_TREE_EXTRA = 72.0
QUERY_X, QUERY_WIDTH = 1068.0, 420.0
WIDTH = QUERY_X + QUERY_WIDTH + MARGIN
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
    queries: tuple[PlannedQuery, ...]


@dataclass(frozen=True, slots=True)
class TreeBlock:
    """A tree with its queries, or (`tree` is None) all trees of a set that are not drawn one by one."""

    tree: Tree | None
    name: str
    colour: str
    card: Box
    rows: tuple[Row, ...]
    rest: tuple[PlannedQuery, ...]
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
    one: PartialSet
    card: Box
    chips: tuple[Chip, ...]
    strip_y: float
    trees: tuple[TreeBlock, ...]


@dataclass(frozen=True, slots=True)
class StreamBlock:
    stream: Stream
    card: Box
    sets: tuple[SetBlock, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    height: float
    streams: tuple[StreamBlock, ...]
    roomy: bool
    hidden_sets: tuple[PartialSet, ...]


def lay_out(plan: Plan) -> Layout:
    drawn, hidden = plan.sets[:MANY_SETS], plan.sets[MANY_SETS:]
    tree_share = _fair_share([len(one.trees) for one in drawn], MANY_TREES, least=2)
    trees = [tree for one in drawn for tree in one.trees[: _kept(len(one.trees), tree_share)]]
    by_window = sum(len(tree.queries) for tree in trees) > MANY_ROWS
    sizes = [len(_bundles(tree, by_window)) for tree in trees]
    row_share = _fair_share(sizes, MANY_ROWS, least=3)
    roomy = sum(_kept(size, row_share) for size in sizes) <= ROOMY_ROWS
    small = len(trees) > MANY_CARDS and max(len(one.trees) for one in drawn) > MANY_CARDS_OF_SET
    builder = _Builder(plan, roomy, by_window, tree_share, row_share, small)
    y = TOP
    streams = []
    for name in dict.fromkeys(one.stream for one in drawn):
        sets = []
        for one in drawn:
            if one.stream == name:
                block, y = builder.set_block(one, y)
                sets.append(block)
        middle = (sets[0].card.middle + sets[-1].card.middle) / 2
        card = Box(STREAM_X, middle - STREAM_HEIGHT / 2, STREAM_WIDTH, STREAM_HEIGHT)
        streams.append(StreamBlock(plan.stream(name), card, tuple(sets)))
    return Layout(max(y, TOP + 40.0), tuple(streams), roomy, hidden)


def _fair_share(sizes: Sequence[int], budget: int, least: int) -> int:
    """The most that everyone may have so that all together stay within the budget."""
    share = max([least, *sizes])
    while share > least and sum(min(size, share) for size in sizes) > budget:
        share -= 1
    return share


def _kept(size: int, share: int) -> int:
    """How many are drawn one by one; the rest takes the place of the last, and is never a single one."""
    return size if size <= share else share - 1


def _bundles(tree: Tree, by_window: bool) -> list[tuple[PlannedQuery, ...]]:
    """A tree's queries by length of their windows; those with the same window together when there are many."""
    ordered = _by_length(tree.queries)
    if not by_window:
        return [(planned,) for planned in ordered]
    groups: dict[object, list[PlannedQuery]] = {}
    for planned in ordered:
        groups.setdefault(planned.query.window, []).append(planned)
    return [tuple(group) for group in groups.values()]


def _by_length(queries: Iterable[PlannedQuery]) -> list[PlannedQuery]:
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
        """Between trees."""
        return 6.0 if self.small_trees else 18.0

    def set_block(self, one: PartialSet, top: float) -> tuple[SetBlock, float]:
        y = top
        trees = []
        kept = _kept(len(one.trees), self.tree_share)
        for tree in one.trees[:kept]:
            block, y = self.tree_block(one, tree, y)
            trees.append(block)
        hidden = one.trees[kept:]
        if hidden:
            queries = tuple(_by_length(planned for tree in hidden for planned in tree.queries))
            block, y = self._stack(one, None, f"+ {len(hidden):,} more trees", "#94a3b8", [], queries, hidden, y)
            trees.append(block)
        chips, chips_height = self._chips(one)
        height = 52.0 + chips_height + strip_height(len(one.trees)) + 46.0
        bottom = max(y, top + height + 18.0)
        shift = (bottom - 18.0 - (y - self.gap)) / 2
        if shift > 0:
            trees = [_moved(block, shift) for block in trees]
        middle = (trees[0].card.middle + trees[-1].card.middle) / 2
        # A tall column of trees must not push the card out of the set's own space.
        card_y = min(max(middle - height / 2, top), bottom - height - 18.0)
        card = Box(SET_X, card_y, SET_WIDTH, height)
        placed = tuple(Chip(chip.text, chip.x, chip.y + card_y, chip.width) for chip in chips)
        return SetBlock(one, card, placed, card_y + 52.0 + chips_height, tuple(trees)), bottom + 10.0

    def tree_block(self, one: PartialSet, tree: Tree, top: float) -> tuple[TreeBlock, float]:
        bundles = _bundles(tree, self.by_window)
        kept = _kept(len(bundles), self.row_share)
        named = {index * len(bundles) // kept for index in range(kept)}  # spread over short and long windows
        rest = tuple(planned for index, bundle in enumerate(bundles) if index not in named for planned in bundle)
        shown = [bundle for index, bundle in enumerate(bundles) if index in named]
        colour = PALETTE[self.drawn_trees % len(PALETTE)]
        self.drawn_trees += 1
        return self._stack(one, tree, tree_name(self.plan, one, tree), colour, shown, rest, (), top)

    def _stack(
        self,
        one: PartialSet,
        tree: Tree | None,
        name: str,
        colour: str,
        bundles: list[tuple[PlannedQuery, ...]],
        rest: tuple[PlannedQuery, ...],
        hidden: tuple[Tree, ...],
        top: float,
    ) -> tuple[TreeBlock, float]:
        row_height = 34.0 if self.roomy else 18.0
        small = self.small_trees or tree is None
        card_height = 26.0
        if tree is not None and not small:
            card_height = 88.0 + (15.0 if len(used_techniques(one, tree)) > 1 else 0.0)
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

    def _chips(self, one: PartialSet) -> tuple[list[Chip], float]:
        """Components in at most two lines; coordinates relative to the card's top."""
        wanted = asked(one)
        chips: list[Chip] = []
        x, y, line = SET_X + 14.0, 50.0, 0
        end = SET_X + SET_WIDTH - 14.0
        for index, part in enumerate(one.components):
            uses = wanted[part.component]
            text = one_line(str(part.component)) + (f" ×{uses:,}" if uses > 1 else "")
            width = min(text_width(text, CHIP_SIZE) + 14.0, 180.0)
            more = len(one.components) - index
            room = end - (52.0 if line == 1 and more > 1 else 0.0)
            if x + width > room:
                if line == 1:
                    chips.append(Chip(f"+{more}", x, y, text_width(f"+{more}", CHIP_SIZE) + 14.0))
                    break
                x, y, line = SET_X + 14.0, y + CHIP_HEIGHT + 5.0, 1
            chips.append(Chip(text, x, y, width))
            x += width + 6.0
        return chips, (line + 1) * (CHIP_HEIGHT + 5.0) + 8.0


def used_techniques(one: PartialSet, tree: Tree) -> list[str]:
    """The techniques that answer something in a tree."""
    wanted = {part for planned in tree.queries for part in planned.query.components}
    pairs = zip(one.components, tree.techniques, strict=True)
    return list(dict.fromkeys(technique for part, technique in pairs if part.component in wanted))


def strip_height(trees: int) -> float:
    """The slices of the set, and under them those of its trees when there are several."""
    return 24.0 if trees == 1 else 16.0 + 3.0 + STRIP_ROW * min(trees, SHOWN_STRIP_TREES)


def rest_lines(rest: Sequence[PlannedQuery]) -> tuple[int, float]:
    """How many thin lines stand for the unnamed queries, and the distance between them."""
    lines = min(len(rest), int(REST_HEIGHT))
    return lines, min(_REST_PITCH, max(1.0, REST_HEIGHT / max(1, lines)))


def _moved(block: TreeBlock, by: float) -> TreeBlock:
    def down(box: Box) -> Box:
        return Box(box.x, box.y + by, box.width, box.height)

    rows = tuple(Row(down(row.box), row.queries) for row in block.rows)
    return TreeBlock(
        block.tree, block.name, block.colour, down(block.card), rows, block.rest, down(block.rest_box), block.hidden
    )
