"""Adapting in the round loop: what rounds showed goes to the adapter, what it chooses into a plan record.

The record is written between two rounds, before the round that runs with it begins. A round that was interrupted runs
again with the plan that it began with, whatever was recorded since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from windloom.durable import PlanRecord
from windloom.durable.adapted import write_adapted
from windloom.engine.running.progress import RoundProgress
from windloom.optimizer.adapt.adapter import Adapter
from windloom.optimizer.adapt.basin import Basin
from windloom.plan.choices import Choices
from windloom.plan.observed import RoundObserved
from windloom.plan.physical import Plan


@dataclass(slots=True)
class Adapting:
    """`basins` are those of the queries of a record; `switch` has the next rounds run with other choices."""

    adapter: Adapter
    basins: Callable[[PlanRecord], list[Basin]]
    switch: Callable[[Choices], None] = lambda choices: None

    def begin(self, record: PlanRecord, plan: Plan) -> None:
        self.adapter.begin(record.version, plan, lambda: self.basins(record))

    def told(self, progress: RoundProgress) -> RoundProgress:
        """The figures of a round with those of adapting so far."""
        adapted, adapter = self.adapter.adapted, self.adapter
        return replace(
            progress,
            predicted=adapter.predicted,
            moves=adapted.moves,
            switches=adapted.switches,
            fidelity=adapted.verdicts.fidelity,
            regret=adapted.verdicts.regret,
        )

    def kept(self) -> dict[str, Any]:
        """What the commit of a round keeps for the next start."""
        measured, self.adapter.measured = self.adapter.measured, None
        return write_adapted(self.adapter.adapted, measured)

    def done(
        self, seen: RoundObserved, seconds: Mapping[str, float], state_bytes: int, *, is_whole: bool = True
    ) -> None:
        wanted = self.adapter.done(seen, seconds, state_bytes, is_whole=is_whole)
        if wanted is not None:
            begun = perf_counter()
            self.switch(wanted)
            self.adapter.switched(perf_counter() - begun)
