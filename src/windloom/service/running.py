"""The part of a running loom that the service needs: a protocol, so that tests can serve one without Spark."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from windloom.engine.running.delivery import SinkWait
from windloom.engine.running.progress import RoundProgress
from windloom.engine.streaming.handle import Answer, Change, Handle
from windloom.engine.what_if import WhatIf
from windloom.errors import WindloomError
from windloom.model.emission import Emits
from windloom.model.stream import Stream
from windloom.plan.physical import Plan
from windloom.service.plan_views import plan_costs, plan_json, plan_picture, query_text
from windloom.service.stored import StoredAnswers


@dataclass(frozen=True, slots=True)
class Rejected:
    """A query of the catalog that could not be registered, and why."""

    name: str
    text: str
    error: WindloomError


class RunningLoom(Protocol):
    """A loom that runs streams, and can be asked and changed meanwhile."""

    @property
    def streams(self) -> Mapping[str, Stream]: ...

    @property
    def queries(self) -> Mapping[str, str]: ...

    @property
    def rejected(self) -> Sequence[Rejected]: ...

    @property
    def is_active(self) -> bool: ...

    @property
    def failure(self) -> BaseException | None: ...

    @property
    def waiting(self) -> SinkWait | None: ...

    @property
    def rounds(self) -> Sequence[RoundProgress]: ...

    def add(self, name: str, text: str) -> Change: ...

    def replace(self, name: str, text: str) -> Change: ...

    def remove(self, name: str) -> Change: ...

    def what_if(self, text: str) -> WhatIf: ...

    def ask(self, text: str) -> Answer: ...

    def explain(self, query: str) -> str: ...

    def plan(self) -> Mapping[str, Any]: ...

    def picture(self) -> str: ...

    def costs(self) -> Mapping[str, Any]: ...

    def groupings(self) -> Mapping[str, Sequence[str]]: ...

    def answers(
        self, name: str, since: str | None, until: str | None, limit: int, most_files: int | None = None
    ) -> pa.Table: ...


class ServedHandle:
    """The handle of a loom whose Parquet sink writes to a directory on this machine."""

    def __init__(
        self, handle: Handle, streams: Mapping[str, Stream], stored: StoredAnswers, rejected: Sequence[Rejected] = ()
    ) -> None:
        self._handle, self._stored = handle, stored
        self.streams, self.rejected = dict(streams), tuple(rejected)
        self._making = threading.Lock()  # many watchers ask for the same plan at once
        self._planned: tuple[Plan, Mapping[str, Any]] | None = None
        self._costed: tuple[Plan, Mapping[str, Any]] | None = None

    @property
    def queries(self) -> Mapping[str, str]:
        return self._handle.queries

    @property
    def is_active(self) -> bool:
        return self._handle.is_active

    @property
    def failure(self) -> BaseException | None:
        return self._handle.exception()

    @property
    def waiting(self) -> SinkWait | None:
        return self._handle.waiting

    @property
    def rounds(self) -> Sequence[RoundProgress]:
        return self._handle.recent_progress

    def add(self, name: str, text: str) -> Change:
        return self._handle.add(name, text)

    def replace(self, name: str, text: str) -> Change:
        return self._handle.replace(name, text)

    def remove(self, name: str) -> Change:
        return self._handle.remove(name)

    def what_if(self, text: str) -> WhatIf:
        return self._handle.what_if(text)

    def ask(self, text: str) -> Answer:
        return self._handle.ask(text)

    def explain(self, query: str) -> str:
        return query_text(self._handle.plan, query)

    def plan(self) -> Mapping[str, Any]:
        plan = self._handle.plan
        with self._making:
            if self._planned is None or self._planned[0] is not plan:
                self._planned = (plan, plan_json(plan))
            return self._planned[1]

    def picture(self) -> str:
        return plan_picture(self._handle.plan)

    def costs(self) -> Mapping[str, Any]:
        plan = self._handle.plan
        with self._making:
            if self._costed is None or self._costed[0] is not plan:
                self._costed = (plan, plan_costs(plan))
            return self._costed[1]

    def groupings(self) -> Mapping[str, Sequence[str]]:
        """Grouping columns by query, with their names in its answers."""
        return {query.name: [group.name for group in query.query.group_by] for query in self._handle.plan.queries}

    def answers(
        self, name: str, since: str | None, until: str | None, limit: int, most_files: int | None = None
    ) -> pa.Table:
        query = self._handle.plan.query(name).query
        columns = self._handle.columns(name)
        replacing = [grouping.name for grouping in query.group_by] if query.emission.kind is Emits.EARLY else None
        rows = self._stored.read(name, columns, since, until, limit, most_files, replacing)
        return self._handle.arrow(name).slice(0, 0) if rows is None else rows
