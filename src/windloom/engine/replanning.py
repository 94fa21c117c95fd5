"""Adapting in the round loop: what rounds observe goes to the adapter, and what it chooses goes into a plan record.

The record is written between two rounds, before the round that runs with it begins. A round that was interrupted runs
again with the plan that it began with, whatever was recorded since.

For some sources it is known what a micro-batch is about to bring. Then the plan is chosen for that, when the round is
about to begin; otherwise it is chosen for what earlier rounds let expect, when the round before is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from windloom.checkpoint.json_codec import write_adapted
from windloom.checkpoint.records import PlanRecord
from windloom.engine.progress import RoundProgress
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.adapt.basins import Basin
from windloom.optimizer.adapt.replan import Adapter
from windloom.plan.costs import Choices
from windloom.statistics.observations import ExpectedInput, RoundObserved, StreamRound

#: The share by which the number of tuples may differ from what was foreseen; if it differs by more, the source is not
#: asked again.
CLOSE = 0.1


@dataclass(slots=True)
class Adapting:
    """`basins` returns the basins of a record's queries; `switch` makes the next rounds run with other choices.

    `coming` returns what the micro-batch with a number brings, by stream, as far as that is known before it is read.
    """

    adapter: Adapter
    basins: Callable[[PlanRecord], list[Basin]]
    switch: Callable[[Choices], None] = lambda choices: None
    coming: Callable[[int], Mapping[str, ExpectedInput]] = lambda batch: {}
    _foreseen: Mapping[str, StreamRound] = field(default_factory=dict)  # what is known of the present round
    _doubtful: set[str] = field(default_factory=set)  # streams that brought something other than foreseen

    def told(self, progress: RoundProgress) -> RoundProgress:
        """The figures of a round, completed by the figures of adapting so far."""
        counts, adapter = self.adapter.counts, self.adapter
        return replace(
            progress,
            predicted=adapter.predicted,
            moves=counts.moves,
            switches=counts.switches,
            fidelity=counts.verdicts.fidelity,
            regret=counts.verdicts.regret,
        )

    def kept(self) -> dict[str, Any]:
        """What the commit of a round keeps for the next start."""
        measured, self.adapter.measured = self.adapter.measured, None
        return write_adapted(self.adapter.counts, measured)

    def done(
        self, seen: RoundObserved, seconds: Mapping[str, float], state_bytes: int, *, is_whole: bool = True
    ) -> None:
        foreseen, self._foreseen = self._foreseen, {}
        for name, known in foreseen.items():
            # A stream that no query reads is foreseen as well, and nobody counts what it brings.
            brought = seen.streams.get(name)
            if brought is not None and abs(brought.tuples - known.tuples) > CLOSE * known.tuples:
                self._doubtful.add(name)
        self._switch(self.adapter.done(seen, seconds, state_bytes, is_whole=is_whole))

    def foresee(self, batch: int, seen: Mapping[str, int]) -> None:
        """Called when a micro-batch's round is about to begin; `seen` are the last ticks of the streams before it."""
        known = {}
        for name, coming in self.coming(batch).items():
            found = None if name in self._doubtful else self._round_of(name, coming, seen)
            if found is not None:
                known[name] = found
        self._foreseen = known
        if known:
            self._switch(self.adapter.foresee(RoundObserved(known)))

    def _round_of(self, name: str, coming: ExpectedInput, seen: Mapping[str, int]) -> StreamRound | None:
        """The round that a stream is about to bring; if its times are not known, it is assumed to last as usual."""
        if not coming.tuples:
            return None
        if coming.first is None or coming.last is None:
            usual = self.adapter.memory.round_of(name)
            return None if usual is None else StreamRound(coming.tuples, usual, usual)
        passed = max(0, coming.last - seen.get(name, coming.first))
        return StreamRound(coming.tuples, passed / TICKS_PER_SECOND, (coming.last - coming.first) / TICKS_PER_SECOND)

    def _switch(self, wanted: Choices | None) -> None:
        if wanted is not None:
            begun = perf_counter()
            self.switch(wanted)
            self.adapter.switched(perf_counter() - begun)
