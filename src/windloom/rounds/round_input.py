"""Everything that the step of a round is called with: what the log of the round keeps, and a replay reads again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from windloom.rounds.positions import RowIntake


@dataclass(frozen=True, slots=True)
class RoundInput:
    """What a round brings, decided once: with the same state and plan, the same input gives the same answers.

    `partials` maps the number of a scan to a table `slice, keys…, component fields`; a scan that is missing had none.
    By stream, `frontiers` are where the round leaves them; `seen` is the largest event tick so far, of tuples that no
    query wants included (without it no query can be added later); `first` is the smallest event tick of this round.
    Landmark queries need both. `rows` is what the round did to the positions of tuples, by which the partials of sets
    that count tuples are cut. `idle` names the streams that the clock counted as idle: they do not hold back queries
    that read other streams too.
    """

    partials: Mapping[int, pa.Table] = field(default_factory=dict)
    frontiers: Mapping[str, int] = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    first: Mapping[str, int] = field(default_factory=dict)
    rows: RowIntake | None = None
    idle: frozenset[str] = frozenset()

    def with_partials(self, partials: Mapping[int, pa.Table]) -> RoundInput:
        return replace(self, partials=partials)
