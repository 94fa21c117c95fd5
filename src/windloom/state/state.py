"""The state between rounds: cells, how far streams have come, and what is known about the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from windloom.model.query import Query
from windloom.model.stream import Version
from windloom.model.time import TICK_MIN
from windloom.plan.plan import PartialSet
from windloom.slicing.edges import EdgeSet
from windloom.state.cells import Cells
from windloom.state.frontiers import Inputs, inputs_of, least
from windloom.state.held import HeldSets
from windloom.state.positions import Positions
from windloom.state.tuple_store import TupleStore


@dataclass(frozen=True, slots=True)
class PastSlicing:
    """The cells of tuples up to the tick `until` were cut, or merged, at `edges`: finer slices cannot be restored."""

    edges: EdgeSet
    until: int


@dataclass(frozen=True, slots=True)
class CellCoverage:
    """The past that the cells of a set cover, which decides from which window a later query is exact.

    `kept_from`: every tuple at or after it is in the cells; TICK_MIN if the set has existed since the first round and
    nothing was dropped. `known_from`: the same for components (by index) that were added to the set later. `cuts`: the
    slicings of earlier plans, oldest first.
    """

    kept_from: int = TICK_MIN
    known_from: Mapping[int, int] = field(default_factory=dict)
    cuts: tuple[PastSlicing, ...] = ()

    def forget(self, before: int) -> CellCoverage:
        """Return the history when tuples before that tick are no longer kept, and facts about them no longer needed."""
        if before <= self.kept_from:
            return self
        known = {index: tick for index, tick in self.known_from.items() if tick > before}
        return CellCoverage(before, known, tuple(cut for cut in self.cuts if cut.until >= before))


@dataclass(frozen=True, slots=True)
class CellsAfterClose:
    """Cells that a round has added while windows of their set were pending.

    `closed` has the queries that owed some, and up to where they were closed when the round began: windows that end
    there, or earlier, do not count these cells.
    """

    cells: Cells
    closed: Mapping[str, int]

    @property
    def is_late(self) -> bool:
        """Whether some of the cells lie behind where a query was closed."""
        return bool(self.closed) and len(self.cells) > 0 and int(np.min(self.cells.starts)) < max(self.closed.values())


@dataclass(frozen=True, slots=True)
class PendingWindows:
    """Cells of a set that only pending windows need: see `state.pending`.

    Without `rounds`, `cells` are those that the state has dropped since. With them, `cells` are what windows saw when
    they closed, and `rounds` what has come since.
    """

    cells: Cells | None = None
    rounds: tuple[CellsAfterClose, ...] | None = None

    @property
    def every(self) -> tuple[Cells, ...]:
        dropped = () if self.cells is None else (self.cells,)
        return (*dropped, *(later_round.cells for later_round in self.rounds or ()))


@dataclass(frozen=True, slots=True)
class State:
    """`frontiers`: how far each stream has come; an absent one has had no tuples.

    `ahead`: queries of several streams that are closed further than these frontiers, because a stream was idle. `seen`:
    the largest event tick of each stream so far. `since`: queries that report only windows which start at or after a
    tick, because earlier ones are not covered completely. `fresh`: queries added since the last step; in their first
    step they report every complete window from history. `first`: the smallest event tick of each stream, of tuples that
    came before its frontier had passed it. `answered`: queries that still have to report closed windows, those that end
    after a tick; `owed` has the cells that only they need. All else is the same as if nothing had been postponed.
    `reported`: the last round in which a row query reported windows, of those that have reported any. `kept`: which
    files hold the tuples of streams that keep them. `summaries`: partials of rows that have entered and not left, by
    name of the query that aggregates them. `versions`: the version of each relation that was seen last; the cells of
    retroactive ones are among `cells`.
    """

    cells: Mapping[int, Cells] = field(default_factory=dict)  # by number of the partial set
    frontiers: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    fresh: frozenset[str] = frozenset()
    history: Mapping[int, CellCoverage] = field(default_factory=dict)  # by number of the set; none: all of it is kept
    first: Mapping[str, int] = field(default_factory=dict)
    positions: Positions = field(default_factory=Positions)
    ahead: Mapping[Inputs, int] = field(default_factory=dict)
    answered: Mapping[str, int] = field(default_factory=dict)  # by name of the query
    owed: Mapping[int, PendingWindows] = field(default_factory=dict)  # by number of the partial set
    reported: Mapping[str, int] = field(default_factory=dict)
    kept: Mapping[str, TupleStore] = field(default_factory=dict)
    summaries: Mapping[str, Cells] = field(default_factory=dict)
    versions: Mapping[str, Version] = field(default_factory=dict)

    def closed_of(self, partial_set: PartialSet) -> int:
        """Return the tick up to which every window of its queries is closed, except for `fresh` queries."""
        return min(map(self.closed_over, inputs_of(partial_set)))

    def closed_over(self, inputs: Inputs) -> int:
        """Return the tick up to which queries over these streams are closed."""
        return max(least(self.frontiers, inputs), self.ahead.get(inputs, TICK_MIN))

    def answered_by(self, query: Query) -> int:
        """Return up to where a query has reported its windows; a fresh one has reported none."""
        return self.answered.get(query.name, self.closed_over(query.inputs))

    @property
    def nbytes(self) -> int:
        """The bytes of all cells, and of tuples that wait for their position."""
        owed = (cells for pending in self.owed.values() for cells in pending.every)
        held = (
            self.cells.nbytes if isinstance(self.cells, HeldSets) else sum(each.nbytes for each in self.cells.values())
        )
        return held + sum(each.nbytes for each in (*self.summaries.values(), *owed)) + self.positions.nbytes

    def history_of(self, number: int) -> CellCoverage:
        return self.history.get(number, CellCoverage())
