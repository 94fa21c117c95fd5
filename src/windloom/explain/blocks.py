"""The parts of the picture: cards, rows and chips with their places, and the measures of its columns."""

from __future__ import annotations

from dataclasses import dataclass

from windloom.model.stream import Stream
from windloom.plan.physical import Member, PartialSet, PlannedJoin, Tree
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
