"""The input of the step: the log of a round keeps it, and a repeated round reads it from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from windloom.model.relation import Version
from windloom.rounds.cells import Cells
from windloom.rounds.positions import Positions
from windloom.rounds.rows.kept import BroughtTuples
from windloom.rounds.taken import Taken


@dataclass(frozen=True, slots=True)
class RoundInput:
    """What a round brings. With the same state and plan, the same input gives the same answers.

    `taken` are the cells of its tuples, and which of them came behind the frontier of their stream. By stream,
    `frontiers` are where the round leaves them; `seen` is the largest event tick so far, including tuples that no query
    wants (without it no query can be added later); `first` is the smallest event tick of this round. Landmark queries
    need both. `rows` are the positions of tuples after the round, by which the cells of sets that count tuples are cut;
    None if they are as before. `idle` names the streams that the clock counted as idle: they do not hold back queries
    that read other streams too. `events` counts the tuples that each stream brought, where that is known. `postponed`
    gives, by query, the tick after which closed windows are left to later rounds. `round` is the number of the round.
    `kept` are files of tuples that the round adds to those that are kept, by stream, and `summaries` the partials of
    rows that enter in it, by name of the query that aggregates them. `versions` are those of relations that are new in
    this round; what joins read of them is among the cells that were taken.
    """

    taken: Taken = field(default_factory=Taken)
    frontiers: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, int] = field(default_factory=dict)
    rows: Positions | None = None
    idle: frozenset[str] = frozenset()
    events: Mapping[str, int] = field(default_factory=dict)
    postponed: Mapping[str, int] = field(default_factory=dict)
    round: int = field(default=0, compare=False)
    kept: Mapping[str, BroughtTuples] = field(default_factory=dict)
    summaries: Mapping[str, Cells] = field(default_factory=dict)
    versions: Mapping[str, Version] = field(default_factory=dict)

    def taking(self, taken: Taken, events: Mapping[str, int] | None = None) -> RoundInput:
        """Return the input with the cells of a round, and how many tuples came."""
        return replace(self, taken=taken, events=self.events if events is None else events)
