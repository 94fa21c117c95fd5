"""A join of windowed streams, taken apart: a plain query for each stream, and how their answers are folded.

At the end t of a window, a join needs from each stream only the answer at t of a plain query that is grouped by the
join keys and by the stream's own grouping columns. So a join consists of *sides*, which are such plain queries, and of
*links* between them, along which a *fold* multiplies and adds up the answers of the sides. Nothing is ever joined
tuple by tuple.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from windloom.model.aggregate import Component
from windloom.model.expression import Expression
from windloom.model.predicate import Predicate
from windloom.model.stream import EnrichedStream, JoinKind
from windloom.model.windows import LandmarkWindow, TimeWindow, Window


@dataclass(frozen=True, slots=True)
class WindowedStream:
    """One stream through one window: `trades [RANGE 1 hour SLIDE 1 minute] AS t`.

    The alias only qualifies names in the text of the query: sources that differ in it are equal. As a side of a join
    it may also be a relation, whose window is a version; `stream` is then its name. If the stream is enriched with
    relations, `enriched` is that stream, and `stream` its name.

    >>> from windloom.model.windows import TimeWindow
    >>> source = WindowedStream("trades", TimeWindow(10, 5), "t")
    >>> source == WindowedStream("trades", TimeWindow(10, 5)), source.streams
    (True, ('trades',))
    """

    stream: str
    window: Window  # the one that answers report on
    alias: str | None = field(default=None, compare=False)
    enriched: EnrichedStream | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads, in the order in which it names them: together they decide when windows close."""
        if self.window.is_version:
            return ()
        return (self.stream,) if self.enriched is None else (self.enriched.base,)

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations it reads, retroactive or not."""
        if self.window.is_version:
            return (self.stream,)
        return () if self.enriched is None else self.enriched.relations

    @property
    def relation(self) -> str:
        """The name of the tuples on which its expressions are evaluated."""
        return self.stream

    def windows_over(self, stream: str) -> tuple[Window, ...]:
        """Return the windows through which it reads one stream; none if it does not."""
        return (self.window,) if stream in self.streams else ()

    def __str__(self) -> str:
        text = f"{self.stream} {self.window}"
        return text if self.alias is None else f"{text} AS {self.alias}"


@dataclass(frozen=True, slots=True)
class Side:
    """One source of a join, and the plain query that the join asks of it.

    All expressions are over the columns of its own stream, without qualifiers. `group_by` holds join keys, columns of
    residual conditions and the query's own grouping columns of this stream, each once and sorted. `components` are
    those that the fold needs for each group of the side, COUNT(*) first.
    """

    source: WindowedStream  # its alias is set, and differs from those of the other sides
    where: Expression | None  # the conjuncts that concern this side alone
    predicate: Predicate | None  # `where` as a predicate
    group_by: tuple[Expression, ...]
    components: tuple[Component, ...]

    @property
    def alias(self) -> str:
        return self.source.alias or self.source.stream

    @property
    def window(self) -> Window:
        return self.source.window

    @property
    def is_relation(self) -> bool:
        """Whether it is the current version of a relation instead of a window over a stream."""
        return self.window.is_version

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression evaluated on the tuples of its stream."""
        expressions = [
            *self.group_by,
            *(expression for component in self.components for expression in component.expressions),
        ]
        if self.where is not None:
            expressions.append(self.where)
        return tuple(dict.fromkeys(expressions))


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Two columns that must be equal: positions in `group_by` of the parent and of the child.

    NULL equals nothing, unless the pair is `null_safe` (`<=>`).
    """

    parent: int
    child: int
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """The join of one side, the child, to another, its parent. The links of a join form a tree.

    `residual` is a further condition on pairs of rows, over the columns `__p{i}` and `__c{i}`: grouping column i of
    the parent and of the child.
    """

    parent: int
    child: int
    kind: JoinKind
    keys: tuple[KeyPair, ...]
    residual: Expression | None = None


@dataclass(frozen=True, slots=True)
class SideComponent:
    """A component of one side, counted as often as its row is matched: sum(a.x), max(a.x), median(a.x).

    `weights` has, for every side, the component that counts its matching rows, which is COUNT(*) unless a FILTER
    concerns that side; the entry of the carrying side itself is not used.
    """

    side: int
    component: int  # among those of the side
    weights: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """A product of one component (a sum or a count) of every side, added if `sign` is 1 and subtracted if it is -1."""

    sign: int
    factors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SumOfProducts:
    """A sum over pairs, as a sum of products of sums: sum(a.x * b.y), sum(a.x - b.y), count(*).

    `counted` counts the pairs that have a value, for sums that are NULL if no pair has one; it is None for counts.
    """

    products: tuple[Product, ...]
    counted: Product | None = None


@dataclass(frozen=True, slots=True)
class Corner:
    """The lowest or highest value of `left operator right` over pairs; it is found among extrema of both sides.

    `left` and `right` are (side, its MIN component, its MAX component). `weights` is as in `SideComponent`.
    """

    operator: str  # +, - or *
    left: tuple[int, int, int]
    right: tuple[int, int, int]
    weights: tuple[int, ...]


#: How one component of a join is made from components of its sides.
Folded = SideComponent | SumOfProducts | Corner


@dataclass(frozen=True, slots=True)
class Join:
    """Several windowed streams, paired by the end of their windows, as one source of a query.

    The first side is the root of the tree of links. In `links`, parents come before children. The kind of a link holds
    for its child and for all sides below it. Sides behind a SEMI or ANTI link only decide whether a row counts: their
    factors are COUNT(*), and count as 1. A side behind a LEFT link that has no match counts as one row, for which
    COUNT(*) without a condition (component 0) is 1, and every other component is empty: 0, or NULL.
    `groups` holds, for every grouping column of the query, the side that has it and its place in `group_by` there.
    `folded` holds how every component of the query (`Query.components`, in order) is made.
    """

    sides: tuple[Side, ...]
    links: tuple[Link, ...]
    groups: tuple[tuple[int, int], ...]
    folded: tuple[Folded, ...]

    @property
    def window(self) -> Window:
        """The windows that answers report on: they end where those of all sides do, and begin with the earliest."""
        windows = [side.window for side in self.sides if not side.is_relation]
        landmark = next((window for window in windows if isinstance(window, LandmarkWindow)), None)
        if landmark is not None:
            return landmark
        longest = max(windows, key=lambda window: window.range_ticks)
        return TimeWindow(longest.range_ticks, longest.slide_ticks, longest.offset_ticks)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams it reads, each once, in the order in which it names them."""
        return tuple(dict.fromkeys(name for side in self.sides for name in side.source.streams))

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations it reads, retroactive or not, each once."""
        return tuple(dict.fromkeys(name for side in self.sides for name in side.source.relations))

    @property
    def relation(self) -> str:
        """The name of the tuples on which its qualified expressions are evaluated: `orders AS o, clicks AS c`."""
        return ", ".join(f"{side.source.stream} AS {side.alias}" for side in self.sides)

    def windows_over(self, stream: str) -> tuple[Window, ...]:
        """Return the windows through which it reads one stream; none if it does not."""
        return tuple(window for side in self.sides for window in side.source.windows_over(stream))

    def __str__(self) -> str:
        return " ⋈ ".join(str(side.source) for side in self.sides)
