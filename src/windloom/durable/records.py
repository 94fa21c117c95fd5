"""Small files of a checkpoint: frames without blobs, which are JSON. The plan record is one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from windloom.durable.framing import frame_bytes, read_frame
from windloom.durable.json_codec import from_json, to_json
from windloom.plan.choices import Choices
from windloom.plan.estimates import Estimates
from windloom.plan.statistics import Ongoing


def read_record(kind: str, name: str, data: bytes, hint: str) -> dict[str, Any]:
    """Return the body of a record; `hint` says what to do if it is damaged."""
    return read_frame(kind, f"the checkpoint's file '{name}'", data, hint).body


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """Everything needed to make a plan again: `queries` by name, `options`, all its `choices`, and `estimates`.

    A repeated round must have the plan it had: the log may hold tuples as they were projected for that plan.
    `estimates` and `ongoing` are what rounds had shown when it was made. Records without trees leave all choices open.

    A record holds from `from_round` on, until a record with a higher version does. `declared` are the queries that the
    program declared when it started the stream: at the next start, they distinguish what the program itself has changed
    from what was changed while the stream ran.
    """

    version: int
    from_round: int
    queries: Mapping[str, str]
    options: Mapping[str, str] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    declared: Mapping[str, str] = field(default_factory=dict)
    aggregates: Mapping[str, str] = field(default_factory=dict)  # user-defined aggregates: the fields of their values
    estimates: Estimates = field(default_factory=Estimates)
    ongoing: Ongoing = field(default_factory=Ongoing)

    @property
    def given(self) -> Choices | None:
        """The choices with which the plan is made; None if they are left open."""
        return self.choices if self.choices.trees else None

    def starting(self, round: int) -> PlanRecord:
        """Return this record, holding from another round on."""
        return replace(self, from_round=round)

    @property
    def history_ticks(self) -> int:
        """How long cells are kept for later queries: part of the record, because the state depends on it."""
        return int(self.options.get("history_ticks", 0))

    def to_bytes(self) -> bytes:
        return frame_bytes("plan", to_json(PlanRecord, self))

    @classmethod
    def from_bytes(cls, name: str, data: bytes) -> PlanRecord:
        hint = (
            "restore it from a copy; if no round has run with it yet, deleting it undoes the change of queries it holds"
        )
        return from_json(cls, read_record("plan", name, data, hint))
