"""A checkpoint directory: everything that a stream needs to continue where it stopped, written before it is relied on.

| file                        | what                                                 | written                       |
|-----------------------------|------------------------------------------------------|-------------------------------|
| `windloom.json`             | the streams it belongs to                            | once                          |
| `plans/000000007.json`      | queries, options, trees, estimates of a plan version | if queries or choices change  |
| `begun/000000042.json`      | which plan version the round runs with               | before the round runs         |
| `log/000000042.arrow`       | the round's input: the truth                         | before anything is answered   |
| `commits/000000042.json`    | the round's progress, and what it observed; if it    | after the sinks have its rows |
|                             | exists, the round is done                            |                               |
| `emitted/000000042.arrow`   | which rows stand, and which groups are known, after  | before the commit, if EMIT    |
|                             | the round                                            | needs it                      |
| `snapshots/000000040.state` | the state after a round, to read fewer logs again;   | now and then                  |
|                             | it names the segments that it consists of            |                               |
| `segments/….arrow`          | cells of one set in a stretch of time                | before a snapshot names it    |

A round that is logged and not committed runs again, with the same plan: a sink may have rows of it. A round that has
begun and is not logged begins again with the newest plan, because nothing of it was answered. If a round failed after
it was logged, its `begun` says so. `begun` and `log` may be damaged, if a crash cut a write short on storage without
atomic renames: then they count as not written, and are written again.

The module is long because these files rely on each other: one class knows which of them are there, and which may go.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from windloom.answers.emission.emission import ReportedRows
from windloom.checkpoint.frames import RESTORE_HINT, DamagedError, frame_bytes, read_file
from windloom.checkpoint.json_codec import from_json
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.records import (
    PlanRecord,
    StateSnapshot,
    differences,
    identity_of,
    segments_named_in,
    with_changes,
)
from windloom.checkpoint.segment_files import SegmentFiles, write_pieces
from windloom.checkpoint.state_codec import read_emitted, write_emitted
from windloom.checkpoint.storage import Storage, fault
from windloom.errors import WindloomError
from windloom.model.stream import Relation, Stream
from windloom.state.held import HeldSets, every
from windloom.state.state import State
from windloom.statistics.observations import RoundObserved

IDENTITY = "windloom.json"
#: The commits of this many rounds are always kept, because they hold what the rounds have observed.
LEAST_COMMITS = 32
#: The number of snapshots that are always kept, so that there is another one if one is damaged.
LEAST_SNAPSHOTS = 2
#: A snapshot that writes more bytes than this is written beside the rounds, by a thread.
BESIDE_BYTES = 4 << 20

#: For each folder, the ending of its files and the name of the fault points around their writes.
_FOLDERS = {
    "plans": ("json", "plan"),
    "begun": ("json", "begun"),
    "log": ("arrow", "log"),
    "commits": ("json", "commit"),
    "emitted": ("arrow", "emitted"),
    "snapshots": ("state", "snapshot"),
}


@dataclass(frozen=True, slots=True)
class RoundStart:
    """The choices fixed before a round runs; `batch` is Spark's number of its micro-batch, None if it has none.

    `only_answers`: the round reads nothing. `has_failed`: it was logged, and then could not be answered.
    """

    plan_version: int
    batch: int | None
    only_answers: bool = False
    has_failed: bool = False


class _SnapshotThread:
    """A snapshot that a thread writes, and what has prevented it."""

    def __init__(self, snapshot: StateSnapshot, write: Callable[[StateSnapshot], None]) -> None:
        self.snapshot, self._write = snapshot, write
        self.error: BaseException | None = None
        # Not a daemon: a process that ends completes it.
        self.thread = threading.Thread(target=self._run, name="windloom-snapshot")
        self.thread.start()

    def _run(self) -> None:
        try:
            self._write(self.snapshot)
        except BaseException as error:  # raised where the loop of rounds looks next
            self.error = error


class Checkpoint:
    """Made by `open`. There is one writer at a time, so the files of each folder are listed once and remembered."""

    def __init__(self, storage: Storage, id: str) -> None:
        self.id = id  # distinguishes the answers of this checkpoint from those of others
        self._storage = storage
        self._numbers: dict[str, list[int]] = {}  # of the files in each folder, in ascending order
        for folder, (ending, _) in _FOLDERS.items():
            stems = [name.removesuffix(f".{ending}") for name in storage.list(folder) if name.endswith(f".{ending}")]
            self._numbers[folder] = sorted(int(stem) for stem in stems if stem.isdecimal())
        self._plans: dict[int, PlanRecord] = {}
        self._begun: dict[int, RoundStart] = {}
        self._lock, self._readers = threading.Lock(), 0
        self._segments = SegmentFiles(storage)
        self._named: dict[int, set[str]] = {}  # segments, by round of the snapshot that names them
        self._writing: _SnapshotThread | None = None
        self.changes: list[str] = []  # sentences about what the catalog has otherwise since this start
        self.columns: dict[str, list[str]] = {}  # of each stream, in the order in which they have come
        self.damaged: dict[str, None] = {}  # names of commits that could not be read, and were left out

    @classmethod
    def open(
        cls, storage: Storage, streams: Mapping[str, Stream], relations: Mapping[str, Relation] | None = None
    ) -> Checkpoint:
        """Create a checkpoint, or verify that it belongs to these streams; nobody else can open it until `close`.

        Relations and columns that it does not have yet are added to it, and delays become those of the streams.

        The round after the last committed one begins again, unless
        it is logged or ends the stream: such a round has no batch, and stays begun, so that the next start ends it.
        """
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        storage.lock(f"process {os.getpid()} on host {socket.gethostname()}, since {now}")
        try:
            identity, changes = _verify(storage, streams, relations or {})
            checkpoint = cls(storage, str(identity["id"]))
            checkpoint.changes = changes
            checkpoint.columns = {name: list(stream["columns"]) for name, stream in identity["streams"].items()}
            following = checkpoint.last_committed + 1
            begun = checkpoint.begun(following)
            is_end = begun is not None and begun.batch is None and following > 0
            if begun is not None and not is_end and checkpoint.read_log(following) is None:
                storage.delete(_name("begun", following))
                del checkpoint._begun[following], checkpoint._numbers["begun"][-1]
            return checkpoint
        except BaseException:
            storage.unlock()
            raise

    @classmethod
    def read_only(cls, storage: Storage, place: str) -> Checkpoint:
        """Return a checkpoint that is only read; a stream may be writing to it."""
        data = storage.read(IDENTITY)
        if data is None:
            raise WindloomError(
                f"there is no checkpoint at '{place}'",
                f"it has no file '{IDENTITY}'",
                "give the directory that a stream was started with: loom.start(checkpoint=…)",
            )
        return cls(storage, str(read_file("checkpoint", IDENTITY, data).body["id"]))

    def close(self) -> None:
        """Let others open the checkpoint. A snapshot that is being written is completed, as far as it can be."""
        if self._writing is not None:
            self._writing.thread.join()
            self._writing = None
        self._storage.unlock()

    # Plans

    def record_plan(self, record: PlanRecord) -> None:
        self._write("plans", record.version, record.to_bytes())
        self._plans[record.version] = record

    def plan(self, version: int) -> PlanRecord:
        if version not in self._plans:
            data = self._read("plans", version)
            if data is None:
                raise _missing(_name("plans", version))
            self._plans[version] = PlanRecord.from_bytes(_name("plans", version), data)
        return self._plans[version]

    def plans(self) -> list[PlanRecord]:
        """Return all plan records that are kept, oldest first."""
        return [self.plan(version) for version in self._numbers["plans"]]

    def newest_plan(self) -> PlanRecord | None:
        versions = self._numbers["plans"]
        return self.plan(versions[-1]) if versions else None

    # Rounds

    def begin(self, round: int, batch: int | None = None, *, answers_of: PlanRecord | None = None) -> PlanRecord:
        """Return the plan that the round runs with: the one it began with before, or else the newest that applies.

        `batch` is Spark's number of the micro-batch, None for a round without one. `answers_of` is the plan of a round
        that reads nothing, and only answers what rounds with that plan have postponed.
        """
        begun = self.begun(round)
        if begun is None:
            version = self._plan_version_for(round) if answers_of is None else answers_of.version
            begun = RoundStart(version, batch, only_answers=answers_of is not None)
            self._write("begun", round, frame_bytes("begun", {"round": round, **asdict(begun)}))
            self._begun[round] = begun
        return self.plan(begun.plan_version)

    def note_failure(self, round: int) -> None:
        """Note that a logged round could not be answered: see `has_failed`."""
        begun = self.begun(round)
        if begun is not None and round > self.last_committed and self.read_log(round) is not None:
            failed = replace(begun, has_failed=True)
            self._storage.write(_name("begun", round), frame_bytes("begun", {"round": round, **asdict(failed)}))
            self._begun[round] = failed

    def has_failed(self, round: int) -> bool:
        """Return whether a round was logged and then failed: it need not answer queries that have changed since."""
        begun = self.begun(round)
        return begun is not None and begun.has_failed

    def upcoming(self, round: int) -> PlanRecord:
        """Return the plan with which `begin` would begin a round."""
        begun = self.begun(round)
        return self.plan(self._plan_version_for(round) if begun is None else begun.plan_version)

    def was_answering(self, round: int) -> bool:
        """Return whether a round that was interrupted reads nothing, and only answers."""
        begun = self.begun(round)
        if begun is not None:
            return begun.only_answers
        log = self.read_log(round)  # `begun` may be damaged
        return log is not None and log.only_answers

    def has_begun(self, round: int) -> bool:
        """Return whether a round that was interrupted had begun, and keeps its plan."""
        return self.begun(round) is not None or self.read_log(round) is not None

    def begun(self, round: int) -> RoundStart | None:
        """Return what a round has begun with; None if it has not begun."""
        if round not in self._begun:
            data = self._read("begun", round)
            if data is None:
                return None
            try:
                body = read_file("begun", _name("begun", round), data).body
            except DamagedError:
                if round <= self.last_committed:
                    raise
                return None
            self._begun[round] = RoundStart(**{field.name: body[field.name] for field in fields(RoundStart)})
        return self._begun[round]

    def _plan_version_for(self, round: int) -> int:
        log = self.read_log(round)
        if log is not None:  # the round did begin, and only its `begun` is damaged
            return log.plan_version
        record = next((plan_record for plan_record in reversed(self.plans()) if plan_record.from_round <= round), None)
        if record is None:
            raise WindloomError(
                f"round {round} has no plan", "no plan is recorded from this round on or earlier", RESTORE_HINT
            )
        return record.version

    @property
    def first_free_round(self) -> int:
        """The first round that can still get another plan; a round that has begun keeps its own."""
        following = self.last_committed + 1
        return following if self.begun(following) is None else following + 1

    @property
    def last_batch(self) -> int:
        """Spark's number of the newest micro-batch that a committed round took in; -1 if there is none."""
        begun = (self.begun(round) for round in reversed(self._numbers["begun"]) if round <= self.last_committed)
        return next((record.batch for record in begun if record is not None and record.batch is not None), -1)

    def write_log(self, log: RoundLog) -> None:
        self._write("log", log.round, log.to_bytes())

    def read_log(self, round: int) -> RoundLog | None:
        data = self._read("log", round)
        if data is None:
            return None
        try:
            return RoundLog.from_bytes(_name("log", round), data)
        except DamagedError:
            if round <= self.last_committed:
                raise
            return None

    def logged(self, last: int) -> Iterator[RoundLog]:
        """Yield the logs of committed rounds up to `last` that are kept, newest first, without a gap."""
        for round in range(last, -1, -1):
            log = self.read_log(round)
            if log is None:
                return
            yield log

    def commit(self, round: int, progress: Mapping[str, Any]) -> None:
        """Mark the round as done: the sinks have its rows, and it will not run again."""
        self._write("commits", round, frame_bytes("commit", progress))

    def write_emitted(self, round: int, emitted: ReportedRows) -> None:
        """Keep what queries have reported up to a round, before it is committed."""
        self._write("emitted", round, write_emitted(emitted))

    def read_emitted(self) -> ReportedRows:
        """Return what queries had reported when the last committed round was done."""
        rounds = [round for round in self._numbers["emitted"] if round <= self.last_committed]
        data = self._read("emitted", rounds[-1]) if rounds else None
        return ReportedRows() if data is None else read_emitted(_name("emitted", rounds[-1]), data)

    def drop_emitted(self) -> None:
        """Delete files that are older than the one that the next round needs."""
        rounds = [round for round in self._numbers["emitted"] if round <= self.last_committed]
        if rounds:
            self._drop("emitted", rounds[-1])

    @property
    def last_committed(self) -> int:
        """The last committed round, or -1. Whether its file exists decides: it is written after everything else."""
        commits = self._numbers["commits"]
        return commits[-1] if commits else -1

    def committed_at(self, round: int) -> float:
        """Return the time of the clock at which a round was committed; now, if that is not known."""
        try:
            about = self.progress(round)
        except DamagedError:
            about = None
        return time.time() if about is None else float(about.get("at", time.time()))

    def progress(self, round: int) -> dict[str, Any] | None:
        """Return the progress with which `commit` was called."""
        data = self._read("commits", round)
        hint = "nothing needs it but the record of progress: go on without"
        return None if data is None else read_file("commit", _name("commits", round), data, hint).body

    def recent_observed(self, most: int) -> list[RoundObserved]:
        """Return what the newest rounds observed, oldest first, as far as it is kept."""
        recorded = (progress["observed"] for progress in self.recent_progress(most) if "observed" in progress)
        return [from_json(RoundObserved, observed) for observed in recorded]

    def recent_progress(self, most: int) -> list[dict[str, Any]]:
        """Return progress of the newest rounds, oldest first; damaged records are left out, and named in `damaged`."""
        records = []
        for round in self._numbers["commits"][-most:]:
            try:
                record = self.progress(round)
            except DamagedError:
                self.damaged[_name("commits", round)] = None
                continue
            if record is not None:
                records.append(record)
        return records

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold this while logs are read beside the rounds: nothing is dropped meanwhile."""
        with self._lock:
            self._readers += 1
        try:
            yield
        finally:
            with self._lock:
                self._readers -= 1

    # Snapshots

    def snapshot(self, round: int, state: State, plan_version: int | None = None) -> None:
        """Keep the state after a round, in terms of the plan with which the round began, or of another one."""
        self.settle()
        self._write_snapshot(self._snapshot_of(round, state, plan_version))
        self._add_snapshot(round, state)

    def snapshot_beside(self, round: int, state: State) -> None:
        """Keep the state after a round, but do not wait for it if it is large: see `settle`."""
        self.settle()
        files = self._segments.missing(state.cells)
        tables = state.cells.tables.values() if isinstance(state.cells, HeldSets) else state.cells.values()
        if sum(segment.size for segment in files) + sum(table.nbytes for table in tables) <= BESIDE_BYTES:
            self.snapshot(round, state)
        else:
            self._writing = _SnapshotThread(self._snapshot_of(round, state, None), self._write_snapshot)

    def settle(self, *, wait: bool = True) -> bool:
        """Complete a snapshot that was written beside the rounds; return whether none is being written any more.

        Raises what has prevented the snapshot from being written, for example a full disk.
        """
        writing = self._writing
        if writing is not None and (wait or not writing.thread.is_alive()):
            writing.thread.join()
            self._writing = None
            if writing.error is not None:
                raise writing.error
            self._add_snapshot(writing.snapshot.round, writing.snapshot.state)
        return self._writing is None

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    def _snapshot_of(self, round: int, state: State, plan_version: int | None) -> StateSnapshot:
        begun = self.begun(round)
        if begun is None:
            raise ValueError(f"round {round} was never begun")
        return StateSnapshot(round, begun.plan_version if plan_version is None else plan_version, state)

    def _write_snapshot(self, snapshot: StateSnapshot) -> None:
        """Write the files of a snapshot: first the segments that it names."""
        for segment in self._segments.missing(snapshot.state.cells):
            self._segments.write(segment)
        fault("before snapshot")
        write_pieces(self._storage, _name("snapshots", snapshot.round), snapshot.to_pieces(self._segments))
        fault("after snapshot")

    def _add_snapshot(self, round: int, state: State) -> None:
        self._named[round] = {segment.name for segment in every(state.cells)}
        if not self._has("snapshots", round):
            insort(self._numbers["snapshots"], round)

    def snapshots(self) -> list[int]:
        """Return rounds after which the state was kept, oldest first."""
        return list(self._numbers["snapshots"])

    def read_snapshot(self, round: int) -> StateSnapshot:
        name = _name("snapshots", round)
        data = self._read("snapshots", round)
        if data is None:
            raise _missing(name)
        return StateSnapshot.from_bytes(name, data, self._segments)

    def newest_snapshot(self) -> StateSnapshot | None:
        """Return the newest readable snapshot of a committed round; the answers of an uncommitted one are still needed.

        Damaged snapshots are deleted: if they counted, logs that they cannot replace would be deleted.
        """
        for round in reversed(self.snapshots()):
            if round <= self.last_committed:
                try:
                    return self.read_snapshot(round)
                except DamagedError:
                    self._storage.delete(_name("snapshots", round))
                    self._numbers["snapshots"].remove(round)
        return None

    def retain(self, keep_rounds: int = 0, keep_snapshots: int = LEAST_SNAPSHOTS) -> None:
        """Drop what recovery cannot need: everything that the oldest of the newest `keep_snapshots` snapshots covers.

        Logs and commits of the newest `keep_rounds` rounds stay in any case.
        """
        with self._lock:
            if self._readers:
                return  # done the next time; readers are soon finished
            if self._writing is not None:
                return  # it may name files that nothing else names yet
            snapshots_left = [number for number in self._numbers["snapshots"] if number <= self.last_committed]
            snapshots_left = snapshots_left[-max(LEAST_SNAPSHOTS, keep_snapshots) :]
            if len(snapshots_left) < LEAST_SNAPSHOTS:
                return
            fault("before retain")
            covered = min(snapshots_left[0], self.last_committed - keep_rounds)
            # Older snapshots first: a snapshot that stays must find all logs after it.
            self._drop("snapshots", snapshots_left[0])
            self._segments.keep_only(self._named_segments())
            self._drop("log", covered + 1)
            self._drop("commits", min(covered + 1, self.last_committed - LEAST_COMMITS + 1))
            # The plan of `covered` is the snapshot's plan, or an older one; plan versions grow with the rounds.
            self._drop("begun", covered)
            oldest = self.begun(covered)
            if oldest is not None:
                self._drop("plans", oldest.plan_version)
            fault("after retain")

    def _named_segments(self) -> set[str]:
        """Return the segments that snapshots name; one that cannot be read names none."""
        named = set[str]()
        for round in self._numbers["snapshots"]:
            if round not in self._named:
                data = self._read("snapshots", round)
                with suppress(DamagedError):
                    self._named[round] = segments_named_in(_name("snapshots", round), data or b"")
            named |= self._named.get(round, set())
        return named

    # Files

    def _read(self, folder: str, number: int) -> bytes | None:
        return self._storage.read(_name(folder, number)) if self._has(folder, number) else None

    def _write(self, folder: str, number: int, data: bytes) -> None:
        point = _FOLDERS[folder][1]
        fault(f"before {point}")
        self._storage.write(_name(folder, number), data)
        if not self._has(folder, number):
            insort(self._numbers[folder], number)
        fault(f"after {point}")

    def _has(self, folder: str, number: int) -> bool:
        numbers = self._numbers[folder]
        index = bisect_left(numbers, number)
        return index < len(numbers) and numbers[index] == number

    def _drop(self, folder: str, before: int) -> None:
        gone = self._numbers[folder][: bisect_left(self._numbers[folder], before)]
        for number in gone:
            self._storage.delete(_name(folder, number))
            if folder == "plans":
                self._plans.pop(number, None)
            if folder == "begun":
                self._begun.pop(number, None)
            if folder == "snapshots":
                self._named.pop(number, None)
        del self._numbers[folder][: len(gone)]


def _name(folder: str, number: int) -> str:
    return f"{folder}/{number:09d}.{_FOLDERS[folder][0]}"


def _missing(name: str) -> WindloomError:
    return WindloomError(f"the checkpoint's file '{name}' is missing", "something else refers to it", RESTORE_HINT)


def _verify(
    storage: Storage, streams: Mapping[str, Stream], relations: Mapping[str, Relation]
) -> tuple[dict[str, Any], list[str]]:
    """Create or verify the identity of the checkpoint; return it, and what has changed in it."""
    wanted = identity_of(streams, relations)
    data = storage.read(IDENTITY)
    if data is None:
        if any(storage.list(folder) for folder in _FOLDERS):
            raise _missing(IDENTITY)
        identity = {"id": uuid4().hex, **wanted}
        storage.write(IDENTITY, frame_bytes("checkpoint", identity))
        return identity, []
    recorded = read_file("checkpoint", IDENTITY, data).body
    identity, changes = with_changes(recorded, wanted)
    differing = list(differences({**identity, "relations": recorded["relations"]}, wanted))
    if differing:
        facts = [each.fact for each in differing[:5]]
        facts += [f"and {len(differing) - 5} more"] if len(differing) > 5 else []
        ways = dict.fromkeys(each.way_out for each in differing[:3])
        raise WindloomError(
            "the checkpoint belongs to another catalog",
            "; ".join(facts),
            f"{'; '.join(ways)}; or give this catalog a checkpoint of its own",
        )
    if identity != recorded:
        storage.write(IDENTITY, frame_bytes("checkpoint", identity))
    return identity, changes
