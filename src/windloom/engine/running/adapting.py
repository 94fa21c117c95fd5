"""Adapting in the round loop: what rounds observe goes to the adapter, and what it chooses goes into a plan record.

The record is written between two rounds, before the round that runs with it begins. A round that was interrupted runs
again with the plan that it began with, whatever was recorded since.

For some sources it is known what a micro-batch is about to bring. Then the plan is chosen for that, when the round is
about to begin; otherwise it is chosen for what earlier rounds let expect, when the round before is over. A preview of
the files shows more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

from windloom.durable import PlanRecord
from windloom.durable.adapted import write_adapted
from windloom.engine.running.progress import RoundProgress
from windloom.model.time import TICKS_PER_SECOND
from windloom.optimizer.adapt.adapter import Adapter
from windloom.optimizer.adapt.basin import Basin
from windloom.optimizer.adapt.followed import Preview
from windloom.plan.choices import Choices
from windloom.plan.observed import Coming, RoundObserved, StreamRound
from windloom.plan.physical import Plan

#: The share by which the number of tuples may differ from what was foreseen; if it differs by more, the source is not
#: asked again.
CLOSE = 0.1
#: Makes the preview of a round for the sets of a plan, by what is known of its streams; None if there is nothing to
#: look at.
Previewing = Callable[[Plan, Mapping[str, Coming], Mapping[str, StreamRound]], Preview | None]


@dataclass(slots=True)
class Adapting:
    """`basins` returns the basins of a record's queries; `switch` makes the next rounds run with other choices.

    `coming` returns what the micro-batch with a number brings, by stream, as far as that is known before it is read;
    `preview` looks into the tuples that it brings.
    """

    adapter: Adapter
    basins: Callable[[PlanRecord], list[Basin]]
    switch: Callable[[Choices], None] = lambda choices: None
    coming: Callable[[int], Mapping[str, Coming]] = lambda batch: {}
    preview: Previewing = lambda plan, coming, rounds: None
    _plan: Plan | None = None
    # What is known of the present round, and what a preview of it has shown, which may come only while it runs.
    _foreseen: Mapping[str, StreamRound] = field(default_factory=dict)
    _shown: tuple[Mapping[str, StreamRound], RoundObserved] | None = None
    _doubtful: set[str] = field(default_factory=set)  # streams that brought something other than foreseen
    _unlike: set[str] = field(default_factory=set)  # streams whose sets got other tuples than a preview showed

    def begin(self, record: PlanRecord, plan: Plan) -> None:
        self._plan = plan
        self.adapter.begin(record.version, plan, lambda: self.basins(record))

    def told(self, progress: RoundProgress) -> RoundProgress:
        """The figures of a round, completed by the figures of adapting so far."""
        adapted, adapter = self.adapter.adapted, self.adapter
        return replace(
            progress,
            predicted=adapter.predicted,
            moves=adapted.moves,
            switches=adapted.switches,
            previews=adapted.previews,
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
        self._doubt(seen)
        self._go_on_with(self.adapter.done(seen, seconds, state_bytes, is_whole=is_whole))

    def foresee(self, batch: int, seen: Mapping[str, int]) -> None:
        """Called when a micro-batch's round is about to begin; `seen` are the last ticks of the streams before it."""
        known, comings = {}, self.coming(batch)
        for name, coming in comings.items():
            found = None if name in self._doubtful else self._round_of(name, coming, seen)
            if found is not None:
                known[name] = found
        self._foreseen = known
        if known:
            own = {name: coming for name, coming in comings.items() if name not in self._unlike}
            look = None if self._plan is None else self.preview(self._plan, own, known)
            preview = None if look is None else partial(self._previewed, look, known)
            self._go_on_with(self.adapter.foresee(RoundObserved(known), preview))

    def _previewed(self, preview: Preview, known: Mapping[str, StreamRound]) -> RoundObserved | None:
        """What a preview shows, with at least as many groups as before.

        Windows are answered from groups of earlier rounds as well.
        """
        shown = preview()
        if shown is None:
            return None
        sets = {
            identity: replace(own, groups=max(own.groups, round(self.adapter.memory.groups_of(identity) or 0)))
            for identity, own in shown.sets.items()
        }
        found = replace(shown, sets=sets)
        self._shown = known, found
        return found

    def _doubt(self, seen: RoundObserved) -> None:
        """Compares what was foreseen of the round with what it has brought, and notes the streams that differ.

        A stream that no query reads is foreseen as well, and nobody counts what it brings.
        """
        foreseen, self._foreseen = self._foreseen, {}
        for name, known in foreseen.items():
            brought = seen.streams.get(name)
            if brought is not None and abs(brought.tuples - known.tuples) > CLOSE * known.tuples:
                self._doubtful.add(name)
        shown, self._shown = self._shown, None
        if shown is None or shown[0] is not foreseen:
            return
        for identity, own in shown[1].sets.items():
            came = seen.sets.get(identity)
            if came is not None and abs(came.tuples - own.tuples) > CLOSE * max(own.tuples, came.tuples):
                self._unlike.add(identity.stream)

    def _round_of(self, name: str, coming: Coming, seen: Mapping[str, int]) -> StreamRound | None:
        """The round that a stream is about to bring; if its times are not known, it is assumed to last as usual."""
        if not coming.tuples:
            return None
        if coming.first is None or coming.last is None:
            usual = self.adapter.memory.round_of(name)
            return None if usual is None else StreamRound(coming.tuples, usual, usual)
        passed = max(0, coming.last - seen.get(name, coming.first))
        return StreamRound(coming.tuples, passed / TICKS_PER_SECOND, (coming.last - coming.first) / TICKS_PER_SECOND)

    def _go_on_with(self, wanted: Choices | None) -> None:
        if wanted is not None:
            begun = perf_counter()
            self.switch(wanted)
            self.adapter.switched(perf_counter() - begun)
