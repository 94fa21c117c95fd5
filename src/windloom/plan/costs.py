"""The predicted cost of a plan: seconds of work per second of event time, and the work they are spent on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TreeSeconds:
    """The seconds of one tree; `techniques` has an entry for each component of the set, 0 if it is not needed."""

    own: float  # merging the set's cells into the tree's own slices
    answers: float  # finding windows and writing answers
    techniques: tuple[float, ...]

    @property
    def total(self) -> float:
        return self.own + self.answers + sum(self.techniques)


@dataclass(frozen=True, slots=True)
class SetSeconds:
    scan: float  # tuples read, sliced and aggregated, once for all trees
    partials: float  # partials shuffled and fetched from the JVM
    merge: float  # partials put in order as cells
    trees: tuple[TreeSeconds, ...]

    @property
    def shared(self) -> float:
        """The costs that are paid once, however the queries form trees."""
        return self.scan + self.partials + self.merge

    @property
    def total(self) -> float:
        return self.shared + sum(tree.total for tree in self.trees)


@dataclass(frozen=True, slots=True)
class PlanSeconds:
    """The predicted cost of a plan, in seconds per second of event time.

    `job` is the one Spark job of a round, spread over the round; `folds` are the folds of joins, by name.
    """

    job: float
    sets: tuple[SetSeconds, ...]
    source: str  # where the constants come from
    folds: Mapping[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return self.job + sum(set_seconds.total for set_seconds in self.sets) + sum(self.folds.values())


@dataclass(frozen=True, slots=True)
class PaperTree:
    """A tree as the papers cost it: Ω operations at every edge (Weave Share, Eq. 1)."""

    edges_per_second: float  # of event time
    operations_per_edge: float
    weaveability: float  # common edges of the tree's queries, as a share of all their edges

    @property
    def cost(self) -> float:
        return self.edges_per_second * self.operations_per_edge


@dataclass(frozen=True, slots=True)
class PaperCosts:
    """A plan as the papers cost it: every tree reads its stream, and combines at its edges (Weave Share, Eq. 3)."""

    reading: float
    trees: Mapping[tuple[int, int], PaperTree]  # by set and tree

    @property
    def combining(self) -> float:
        return sum(tree.cost for tree in self.trees.values())

    @property
    def total(self) -> float:
        return self.reading + self.combining


@dataclass(frozen=True, slots=True)
class Advice:
    """Another slide for a query, and what it would save."""

    slide_ticks: int
    saves: float  # seconds per second


@dataclass(frozen=True, slots=True)
class QueryShare:
    """One query's part of the plan's cost. The parts of all queries add up to the whole.

    Each cost is divided among the queries that cause it, in proportion to what each would cause alone.
    """

    seconds: float
    alone: float  # what the query would cost as the only one
    added_edges_per_second: float  # slices of its set that exist only for this query; 0 if that was not asked for
    hindrance: tuple[str, int] | None = None  # a query of its set, and what the two slides have in common, in ticks
    advice: tuple[Advice, ...] = ()

    @property
    def saved(self) -> float:
        """The share of its cost alone that sharing saves."""
        return 1 - self.seconds / self.alone if self.alone > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Merger:
    """Two trees of a set merged into one: what they would have in common, and how much more the plan would cost."""

    other: int
    weaveability: float
    more: float  # seconds per second; negative if one tree would be cheaper


@dataclass(frozen=True, slots=True)
class SharingReport:
    """The figures of EXPLAIN SHARING: predicted seconds, the part of each query, and what other trees would cost."""

    seconds: PlanSeconds
    queries: Mapping[str, QueryShare]
    mergers: Mapping[tuple[int, int], tuple[Merger, ...]]  # by set and tree, nearest first
    common: Mapping[tuple[int, int], float]  # by set and tree: common edges of its queries, as a share of all
    #: Costs by name; the shares of sides, which are in `queries` too, are divided among the joins that ask them.
    joins: Mapping[str, QueryShare] = field(default_factory=dict)


# The choices of a plan where it could have chosen otherwise: a record keeps them, and a later round may switch them.
#
# No choice changes a row. Trees and techniques are choices of every plan; all others are options of *switches*, which
# are registered in `optimizer/adapt/candidates.py` and known here by name only.


@dataclass(frozen=True, slots=True, order=True)
class TreeChoice:
    """The queries of one tree, and the techniques of components (by their text) that are not the usual ones."""

    queries: tuple[str, ...]
    techniques: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """All choices of a plan, in a fixed order: plans with equal choices do the same.

    `options` has (switch, about, option): ("intake", "trades", "native").
    """

    trees: tuple[TreeChoice, ...] = ()
    options: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def of(cls, trees: Iterable[TreeChoice], options: Mapping[str, Mapping[str, str]]) -> Choices:
        flat = ((switch, about, option) for switch, chosen in options.items() for about, option in chosen.items())
        return cls(tuple(sorted(trees)), tuple(sorted(flat)))

    def options_of(self, switch: str) -> dict[str, str]:
        """Return the options of a switch by stream or join."""
        return {about: option for name, about, option in self.options if name == switch}

    def with_option(self, switch: str, about: str, option: str) -> Choices:
        """Return these choices with another option of one switch."""
        others = (option for option in self.options if option[:2] != (switch, about))
        return Choices(self.trees, tuple(sorted((*others, (switch, about, option)))))

    @property
    def tree_names(self) -> list[list[str]]:
        """The names of the queries of each tree."""
        return [list(tree.queries) for tree in self.trees]

    def __or__(self, other: Choices) -> Choices:
        """Return the choices of two plans that have no query and no stream in common."""
        return Choices(tuple(sorted(self.trees + other.trees)), tuple(sorted(self.options + other.options)))
