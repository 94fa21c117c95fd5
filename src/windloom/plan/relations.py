"""The relations of a plan: how the rows of a retroactive one become the cells of the sets that joins read."""

from __future__ import annotations

from dataclasses import dataclass, field

from windloom.model.relation import Relation, Version
from windloom.plan.scans import WovenScan


@dataclass(frozen=True, slots=True)
class PlannedRelation:
    """A relation, and the sets that hold its version.

    `sets` are the numbers of the sets that hold its version; none if it is not retroactive.

    `scan` makes their cells from all rows of a version, and is None if no row can be part of any set. `version` is the
    last one that was seen, if any; it does not count for equality.
    """

    relation: Relation
    sets: tuple[int, ...] = ()
    scan: WovenScan | None = None
    version: Version | None = field(default=None, compare=False)

    @property
    def name(self) -> str:
        return self.relation.name
