"""A loom's observations of its data, from its own runs or from the rounds of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from windloom.durable import Checkpoint
from windloom.durable.checkpoint import LEAST_COMMITS
from windloom.engine.results import Results
from windloom.errors import WindloomError
from windloom.explain import damaged_text
from windloom.model.relation import Version
from windloom.optimizer import Known
from windloom.plan.estimates import Estimates
from windloom.plan.memory import Memory, estimates_of
from windloom.plan.observed import RoundObserved
from windloom.plan.statistics import Ongoing


class Learned:
    """A run has seen all data, so it replaces earlier runs. Sets that it did not have keep their estimates."""

    def __init__(self) -> None:
        self.estimates = Estimates()
        self.ongoing: Ongoing | None = None
        self.versions: dict[str, Version] = {}  # versions of relations that the last run has read
        self.rounds: list[RoundObserved] = []  # rounds of the stream that was learned from

    @property
    def known(self) -> Known:
        return Known(estimates=self.estimates, ongoing=self.ongoing, versions=self.versions)

    def known_with(self, files: Mapping[str, frozenset[str]]) -> Known:
        """Return `known` with the columns that the driver can read from files, by stream; a running stream has none."""
        return self.known if self.ongoing is not None else replace(self.known, files=files)

    def add(self, results: Results) -> bool:
        """Keep rates, groups and sizes of relations as a run observed them; return whether any of it is new."""
        estimates = estimates_of(results.observed).before(self.estimates)
        versions = {**self.versions, **results.versions}
        if (estimates, versions) == (self.estimates, self.versions):
            return False
        self.estimates, self.versions = estimates, versions
        return True

    def read(self, checkpoint: Checkpoint, place: str) -> list[str]:
        """Read what the last rounds of a stream have observed; return files that were left out as damaged."""
        memory, newest = Memory(), checkpoint.newest_plan()
        self.rounds = checkpoint.recent_observed(LEAST_COMMITS)
        if checkpoint.damaged and not self.rounds:
            raise WindloomError(
                f"nothing can be learned from '{place}'",
                damaged_text(list(checkpoint.damaged)),
                "plan without it, or let the stream run a round",
            )
        for observed in self.rounds:
            memory.add(observed)
        self.estimates = memory.estimates(trends=True).before(self.estimates)
        self.ongoing = None if newest is None else newest.ongoing
        return list(checkpoint.damaged)
