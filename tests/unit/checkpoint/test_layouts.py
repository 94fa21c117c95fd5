"""The layout of every file of a checkpoint: files that were written once are read, and written in the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from windloom.checkpoint.checkpoint import Checkpoint, RoundStart
from windloom.checkpoint.frames import frame_bytes, read_file, read_frame
from windloom.checkpoint.json_codec import from_json, read_adapted, to_json, write_adapted
from windloom.checkpoint.logs import RoundLog
from windloom.checkpoint.records import PlanRecord, StateSnapshot
from windloom.checkpoint.segment_files import SegmentFiles
from windloom.checkpoint.storage import LocalStorage
from windloom.model.stream import Version
from windloom.optimizer.adapt.replan import AdaptCounts, Verdicts
from windloom.optimizer.adapt.round_cost import MeasuredRound, RoundCost
from windloom.plan.costs import Choices, TreeChoice
from windloom.slicing.edges import EdgeClass, EdgeSet
from windloom.state.positions import Counting, PositionCounts, Positions
from windloom.state.state import CellCoverage, PastSlicing, State
from windloom.state.tuple_store import Coverage, NewTupleFiles, TupleFile, TupleStore
from windloom.statistics.estimates import Estimates, StreamEstimate
from windloom.statistics.observations import KeyHistogram, LinkEstimate, LinkRound, RoundObserved, StreamRound
from windloom.statistics.set_statistics import GIVEN, Mean, Ongoing, SetEstimate, SetIdentity, SetRound
from windloom.weave.round_input import RoundInput, ScanResult
from windloom.weave.weave import ScanCounts

FOLDER = Path(__file__).parents[2] / "golden" / "checkpoint"

SETS = SetIdentity("s", "a > 1", ("k", "upper(n)"), ("rows", "k")), SetIdentity("t")
LINK = LinkRound(KeyHistogram(((-7, 10), (2**62, 3)), 20, 10), KeyHistogram(), 14, 9)
OBSERVED = RoundObserved(
    {"s": StreamRound(5, 1.5, 2.5, {"a > 1": 2}, 3), "t": StreamRound(0, 0.0, 0.0)},
    {SETS[0]: SetRound(2, 1, 1, 4, 0.5), SETS[1]: SetRound(9, 8, 7, 6, 3.0)},
    {"j": (LINK, LinkRound(KeyHistogram(), KeyHistogram(), 0, 0)), "i": ()},
)
ADAPTED = AdaptCounts(4, 3, Verdicts(9, 7, 5, 0.25))
MEASURED = MeasuredRound(RoundCost(0.1, 0.2, 0.3, 0.4, 500.0, 60.0), {"take in": 0.5}, (("s", "woven"),), 4096.0)
RECORD = PlanRecord(
    3,
    7,
    {"q": "SELECT count(*) AS n FROM s [TUMBLE 5 seconds]", "ä": "…"},
    {"strategy": "auto", "history_ticks": "60"},
    Choices.of(
        [TreeChoice(("q",), (("max(x)", "b_int"), ("sum(x)", "two_stacks"))), TreeChoice(("a", "b"))],
        {"intake": {"s": "native", "t": "woven"}, "fold": {"j": "pairwise"}},
    ),
    {"q": "SELECT …"},
    {"spread": "low DOUBLE, high DOUBLE"},
    Estimates(
        {
            "s": StreamEstimate(Mean(2.5, 3, 0.1), None, {"a > 1": 0.4}, 2.0),
            "t": StreamEstimate(Mean(1e-9, 1), Mean(5.0, 2, -0.5)),
        },
        {SETS[0]: SetEstimate(Mean(0.4, 3), Mean(7.0, 2), Mean(3.0, 3), 0.5, 0.25)},
        {"j": (LinkEstimate(0.5, 1.5, 0.75, 4.0, 5.0, 6),)},
    ),
    Ongoing(5.0, GIVEN, 60.0),
)
VERSIONS = {"r": Version(3, 2, 100, None), "z": Version(1, 0)}
FILES = TupleFile("s/a.parquet", -5, 90, 1, 4, 1_000, 65_536), TupleFile("s/b.parquet", 91, 99, 5, 5, 2, 700)
LOG = RoundLog(
    7,
    3,
    RoundInput(
        ScanResult({}, {}, {0: ScanCounts(5, {"a > 1": 2}, 3)}),
        {"s": 90},
        {"s": 99},
        {"s": -5},
        Positions({}, {Counting("s", ("k",)): PositionCounts(None, 4)}),
        frozenset({"t", "s"}),
        {"s": 5},
        {"q": 80},
        7,
        {"s": NewTupleFiles(FILES, frozenset({"s/y.parquet", "s/x.parquet"}), frozenset({"s/z.parquet"}))},
        versions=VERSIONS,
    ),
    {"s": 1},
    only_answers=True,
)
STATE = State(
    frontiers={"t": 80, "s": 90},
    seen={"s": 99},
    since={"q": 10},
    fresh=frozenset({"q", "p"}),
    history={
        0: CellCoverage(-40, {1: 5, 0: 3}, (PastSlicing(EdgeSet((EdgeClass(10, 3), EdgeClass(5, 0))), 60),)),
        1: CellCoverage(None),
    },
    first={"s": -5},
    ahead={("s", "t"): 70},
    answered={"q": 80},
    reported={"p": 4},
    kept={
        "s": TupleStore(FILES, (Coverage(("ts", "k"), None, 3), Coverage(("ts",), ("a > 1", "b"), -9))),
        "t": TupleStore(),
    },
    versions=VERSIONS,
)


def commit_bytes() -> bytes:
    body = {"round": 7, "observed": to_json(RoundObserved, OBSERVED), "adapted": write_adapted(ADAPTED, MEASURED)}
    return frame_bytes("commit", body)


NO_FILES = SegmentFiles(LocalStorage(FOLDER))

#: What every file holds, as it is written.
WRITTEN: Mapping[str, Callable[[], bytes]] = {
    "plan.json": RECORD.to_bytes,
    "plan_of_nothing.json": PlanRecord(0, 0, {}).to_bytes,
    "commit.json": commit_bytes,
    "log.arrow": LOG.to_bytes,
    "snapshot.state": lambda: b"".join(StateSnapshot(7, 3, STATE).to_pieces(NO_FILES)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_files_are_written_as_they_were(name: str) -> None:
    kept, written = (FOLDER / name).read_bytes(), WRITTEN[name]()
    if name == "snapshot.state":  # it also holds a table, whose bytes are pyarrow's
        kept, written = (repr(read_frame("snapshot", name, data, "").body).encode() for data in (kept, written))
    assert written == kept


def test_files_are_read_as_they_were() -> None:
    held = {name: (FOLDER / name).read_bytes() for name in WRITTEN}
    assert PlanRecord.from_bytes("plan", held["plan.json"]) == RECORD
    assert PlanRecord.from_bytes("plan", held["plan_of_nothing.json"]) == PlanRecord(0, 0, {})
    # The second was written when rounds were still looked into before they began, and has counts of that.
    for written in (held["commit.json"], (FOLDER / "commit_with_previews.json").read_bytes()):
        commit = read_file("commit", "commit", written).body
        assert from_json(RoundObserved, commit["observed"]) == OBSERVED
        assert read_adapted([commit]) == (ADAPTED, [MEASURED])
    # The second was written when rounds might run in shards.
    for log in (held["log.arrow"], (FOLDER / "log_with_shards.arrow").read_bytes()):
        assert RoundLog.from_bytes("log", log) == LOG
    assert StateSnapshot.from_bytes("snapshot", held["snapshot.state"], NO_FILES) == StateSnapshot(7, 3, STATE)


def test_what_a_round_began_with_is_written_and_read_as_it_was(tmp_path: Path) -> None:
    checkpoint = Checkpoint.open(LocalStorage(tmp_path), {})
    checkpoint.record_plan(PlanRecord(0, 0, {}))
    checkpoint.begin(0, 5)
    written = (tmp_path / "begun" / "000000000.json").read_bytes()
    assert written == (FOLDER / "begun.json").read_bytes()
    checkpoint.close()
    assert Checkpoint.read_only(LocalStorage(tmp_path), "here").begun(0) == RoundStart(0, 5)
