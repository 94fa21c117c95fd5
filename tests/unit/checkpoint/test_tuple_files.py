"""The tuple store: files that die whole, are merged, are found missing, and need room."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from support.join_looms import registered
from support.micro_batches import CrashError, MicroBatches, answers_in, crash_at
from support.row_rounds import AGGREGATED, QUERIES, STREAMS, TEXTS, TYPES
from windloom.checkpoint.storage import LocalStorage
from windloom.checkpoint.tuple_files import planned_room, refuse_without_room
from windloom.checkpoint.tuple_folder import MERGED_FILES, STRETCHES
from windloom.errors import WindloomError
from windloom.language.select import parse_query
from windloom.model import DataType, ExpressionKey, Query, Stream
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.state.tuple_store import Coverage, TupleFile, TupleStore

Row = dict[str, Any]


def row(tick: int, **values: Any) -> Row:
    return {"tick": tick, "k": "a", "i": 2, **values}


def life(folder: Path, *names: str, **options: Any) -> MicroBatches:
    made = MicroBatches(folder, STREAMS, types=TYPES, **options)
    made.change(chosen(*names))
    return made


def chosen(*names: str) -> Mapping[str, Query]:
    return {name: QUERIES[name] for name in names}


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "checkpoint" / "tuples").rglob("*.parquet"))


def named(batches: MicroBatches) -> list[str]:
    return sorted(file.name.rpartition("/")[2] for kept in batches.state.kept.values() for file in kept.files)


def test_files_go_when_no_open_window_needs_them(tmp_path: Path) -> None:
    with life(tmp_path, "tumbling") as stream:
        for number in range(6):
            stream.round({"s": [row(10 * number), row(10 * number + 3)]})
            assert files_in(tmp_path) == named(stream)
        # The frontier is 4 behind the last tuple, 53: windows of 5 up to 45 are closed, and the last of them is kept.
        assert [file.first for file in stream.state.kept["s"].files] == [40, 43, 50, 53]
        stream.finish()
        assert files_in(tmp_path) == []


def test_a_round_that_brings_more_time_than_is_kept_writes_few_files(tmp_path: Path) -> None:
    with life(tmp_path, "tumbling") as stream:
        with patch.object(stream.tuples, "keep_only"):
            stream.round({"s": [row(tick) for tick in range(500)]})
        assert len(files_in(tmp_path)) == 2 * STRETCHES + 1
        assert [file.first for file in stream.state.kept["s"].files] == list(range(490, 500))


def test_only_what_a_row_query_reads_is_kept(tmp_path: Path) -> None:
    with life(tmp_path, "tumbling") as stream:
        stream.round({"s": [row(1, i=0), row(2, i=3)], "t": [row(1)]})
        (file,) = stream.state.kept["s"].files
        table = stream.tuples.read(file)
        assert table.column_names == ["__tick", "__round", "c1", "c2"]
        assert table["c2"].to_pylist() == [3]
        assert list(stream.state.kept) == ["s"]


def test_tuples_that_are_asked_to_be_kept_are_kept_whole(tmp_path: Path) -> None:
    with life(tmp_path, "tumbling", tuples=1_000) as stream:
        stream.round({"s": [row(1, i=0), row(2, i=3)], "t": [row(5)]})
        stream.round({"s": [row(900)], "t": [row(900)]})
        assert {name: sum(file.rows for file in kept.files) for name, kept in stream.state.kept.items()} == {
            "s": 3,
            "t": 2,
            "u": 0,
        }
        stream.round({"s": [row(1_300)]})
        assert [file.first for file in stream.state.kept["s"].files] == [900, 1_300]


def test_small_files_of_one_stretch_become_one(tmp_path: Path) -> None:
    with life(tmp_path, "tumbling", tuples=8_000) as stream:
        for number in range(MERGED_FILES + 1):
            stream.round({"s": [row(number, i=number)]})
        files = stream.state.kept["s"].files
        assert sorted(file.rows for file in files) == [1, MERGED_FILES]
        merged = max(files, key=lambda file: file.rows)
        assert (merged.first, merged.last, merged.first_round, merged.last_round) == (0, 7, 0, 7)
        table = stream.tuples.read(merged)
        assert table["__round"].to_pylist() == list(range(MERGED_FILES))
        assert files_in(tmp_path) == named(stream)


def test_what_an_interrupted_attempt_has_written_is_deleted(tmp_path: Path) -> None:
    with pytest.raises(CrashError), crash_at("before log"), life(tmp_path, "tumbling") as stream:
        stream.round({"s": [row(1)]})
    assert len(files_in(tmp_path)) == 1
    with life(tmp_path, "tumbling") as stream:
        assert files_in(tmp_path) == []
        stream.round({"s": [row(1), row(3)]})
        stream.finish()
    assert [found["i"] for own in answers_in(tmp_path).values() for found in own["tumbling"]] == [2, 2]


def lose(folder: Path, place: int) -> str:
    path = sorted((folder / "checkpoint" / "tuples").rglob("*.parquet"))[place]
    path.unlink()
    return path.name


def test_windows_that_need_a_lost_file_are_not_reported_and_others_are(tmp_path: Path) -> None:
    rounds = [[row(2), row(3)], [row(7)], [row(12)], [row(17)], [row(26)]]
    with life(tmp_path, "sliding", tuples=1_000) as stream:
        for rows in rounds[:3]:
            stream.round({"s": rows})
    lose(tmp_path, 1)
    with life(tmp_path, "sliding", tuples=1_000) as stream:
        stream.tuples.look_for_lost(stream.state.kept)
        assert stream.tuples.lost
        for rows in rounds[3:]:
            stream.round({"s": rows})
        stream.finish()
        assert stream.state.kept["s"].coverages[0].since == 8
    ends = sorted({found["window_end"] for own in answers_in(tmp_path).values() for found in own["sliding"]})
    # Closed before the loss: 5. Windows that begin at 8 or later are complete.
    assert ends == [5, 17, 21, 25, 29, 33]


def test_a_file_that_is_lost_while_the_stream_runs_is_named_and_other_queries_go_on(tmp_path: Path) -> None:
    rounds = [[row(2), row(3)], [row(7)], [row(12)], [row(17)], [row(26)]]
    texts = {"counted": "SELECT k, count(*) AS n FROM s [TUMBLE 5 us] GROUP BY k", "near": TEXTS["near"]}
    registry = registered({"sliding": TEXTS["sliding"], **texts}, STREAMS)
    with MicroBatches(tmp_path, STREAMS, types=registry.types(), tuples=1_000) as stream:
        stream.change(registry.queries)
        for number, rows in enumerate(rounds):
            done = stream.round({"s": rows, "t": rows})
            assert len(done.lost) == (number == 3)
            if number == 2:
                name = lose(tmp_path, 1)
            if number == 3:
                assert done.lost[0].endswith(name)
        stream.finish()
    found = [query for own in answers_in(tmp_path).values() for query in own.items()]
    assert sum(answer["n"] for query, own in found if query == "counted" for answer in own) == 6
    assert {answer["window_end"] for query, own in found if query == "sliding" for answer in own} == {
        5,
        17,
        21,
        25,
        29,
        33,
    }


def test_a_file_that_is_lost_before_its_round_is_answered_again(tmp_path: Path) -> None:
    with life(tmp_path, "sliding") as stream:
        stream.round({"s": [row(2)]})
        with pytest.raises(CrashError), crash_at("after log"):
            stream.round({"s": [row(22)]})
    lose(tmp_path, 0)
    with life(tmp_path, "sliding") as stream:
        stream.tuples.look_for_lost(stream.state.kept)
        stream.round({"s": [row(22)]})
        stream.finish()
    ends = {found["window_end"] for own in answers_in(tmp_path).values() for found in own["sliding"]}
    assert ends == {25, 29}


def damage(path: Path) -> None:
    """Other bytes, as many as before: only who reads the tuples can tell."""
    data = path.read_bytes()
    path.write_bytes(data[:40] + bytes(byte ^ 255 for byte in data[40:140]) + data[140:])


def test_a_damaged_file_is_named_and_counts_as_lost(tmp_path: Path) -> None:
    with life(tmp_path, "sliding", tuples=1_000) as stream:
        stream.round({"s": [row(tick) for tick in range(40)]})
        (file,) = stream.state.kept["s"].files
        path = tmp_path / "checkpoint" / file.name
        damage(path)
        with pytest.raises(WindloomError, match=f"the tuple file '{file.name}' is damaged") as caught:
            stream.tuples.read(file)
        assert "windows of row queries that need it are not reported" in caught.value.hint
        assert stream.round({"s": [row(60)]}).lost == [file.name]  # reads it
        assert not path.exists()
        stream.finish()
    ends = {found["window_end"] for own in answers_in(tmp_path).values() for found in own["sliding"]}
    assert {end for end in ends if end > 37} == {61, 65, 69}


#: Windows that are open when a file is lost, windows that are not, joins, aggregates over joins; and plain queries.
LOSING = {
    **{name: TEXTS[name] for name in ("sliding", "entering", "leaving", "joined", "near", "except")},
    "long": "SELECT s.i AS a, t.i AS b FROM s [RANGE 12 us SLIDE 4 us] JOIN t [RANGE 12 us] ON s.k = t.k",
}
SUMMARISED = {
    **{name: AGGREGATED[name] for name in ("unequal_count", "near_count")},
    "long_count": "SELECT s.k, count(*) AS n, sum(s.i * t.i) AS p FROM s [RANGE 12 us SLIDE 4 us] JOIN t [RANGE 12 us]"
    " ON s.i < t.i GROUP BY s.k",
}
PLAIN = "SELECT k, count(*) AS n, sum(i) AS total FROM s [RANGE 8 us SLIDE 4 us] GROUP BY k"
ROUNDS = [
    {name: [row(10 * number + place, k=f"k{place % 3}", i=place) for place in range(10)] for name in ("s", "t")}
    for number in range(5)
]


def answers_after(
    folder: Path, wrong: str, texts: Mapping[str, str]
) -> tuple[dict[int, dict[str, Any]], list[list[str]]]:
    """All answers, and what each round has lost, if something is wrong with a file before the third round."""
    registry = registered({"plain": PLAIN, **texts}, STREAMS)
    with MicroBatches(folder, STREAMS, types=registry.types()) as stream:
        stream.change(registry.queries)
        for rows in ROUNDS[:2]:
            stream.round(rows)
        # Windows that do not need this file have rows that entered before.
        (file,) = stream.state.kept["s"].between(3, 4)
        path = folder / "checkpoint" / file.name
        for number, rows in enumerate(ROUNDS[2:]):
            if number == 0 and "after a crash" in wrong:
                with pytest.raises(CrashError), crash_at("after log"):
                    stream.round(rows)
            if number == 0 and wrong != "nothing":
                damage(path) if "damaged" in wrong else path.unlink()
            if number == 0 and "before a crash" in wrong:
                # The second time: the first is the log before the file was found to be damaged.
                with pytest.raises(CrashError), crash_at("after log", 2):
                    stream.round(rows)
            if "crash" in wrong:
                break
            stream.round(rows)
        else:
            stream.finish()
    if "crash" in wrong:
        with MicroBatches(folder, STREAMS, types=registry.types()) as stream:
            stream.tuples.look_for_lost(stream.state.kept)
            for rows in ROUNDS[2:]:
                stream.round(rows)
            stream.finish()
            lost = [list(done.lost) for done in stream.done]
    else:
        lost = [list(done.lost) for done in stream.done[2:]]
    found = {
        number: {name: sorted(rows, key=repr) for name, rows in own.items()}
        for number, own in sorted(answers_in(folder).items())
    }
    return found, [[name[: len("tuples/s-")] for name in own] for own in lost]


@cache
def undamaged(wrong: str, count: int) -> tuple[dict[int, dict[str, Any]], list[list[str]]]:
    """What damaged files are compared with: the same for every kind of damage."""
    texts = next(texts for texts in (LOSING, LOSING | SUMMARISED) if len(texts) == count)
    with tempfile.TemporaryDirectory() as folder:
        return answers_after(Path(folder), wrong, texts)


@pytest.mark.parametrize(
    ("wrong", "texts"),
    [
        ("damaged", LOSING | SUMMARISED),  # found before the round is logged, by an aggregate
        ("damaged", LOSING),  # found after it
        ("damaged before a crash", LOSING),
        ("damaged after a crash", LOSING | SUMMARISED),
        ("missing after a crash", LOSING | SUMMARISED),
    ],
)
def test_a_damaged_file_that_row_queries_read_counts_as_missing_and_all_others_go_on(
    tmp_path: Path, wrong: str, texts: Mapping[str, str]
) -> None:
    whole, none = undamaged("nothing", len(texts))
    missing, found = undamaged("missing", len(texts))
    damaged, also_found = answers_after(tmp_path / "damaged", wrong, texts)
    assert damaged == missing
    assert also_found == found == [["tuples/s-"], [], [], []]
    assert none == [[]] * 4
    plain, own = ([(number, every.get("plain")) for number, every in each.items()] for each in (whole, damaged))
    assert own == plain
    for number, every in damaged.items():
        for name in {"sliding", "long", "joined", "except", *SUMMARISED}.intersection(texts):
            ends = {answer["window_end"] for answer in every.get(name, [])}
            assert every.get(name, []) == [each for each in whole[number].get(name, []) if each["window_end"] in ends]
    assert damaged != whole


def test_a_damaged_file_that_no_query_reads_is_named_and_partials_go_on(tmp_path: Path) -> None:
    registry = registered({"counted": "SELECT k, count(*) AS n FROM s [TUMBLE 5 us] GROUP BY k"}, STREAMS)
    with MicroBatches(tmp_path, STREAMS, types=registry.types(), tuples=8_000) as stream:
        stream.change(registry.queries)
        for number in range(MERGED_FILES):
            stream.round({"s": [row(number)]})
        file = stream.state.kept["s"].files[2]
        path = tmp_path / "checkpoint" / file.name
        data = path.read_bytes()
        path.write_bytes(data[:4] + bytes(byte ^ 255 for byte in data[4:-4]) + data[-4:])
        done = stream.round({"s": [row(MERGED_FILES)]})  # would merge it with others
        assert done.lost == [file.name]
        assert file.name not in {kept.name for kept in stream.state.kept["s"].files}
        assert stream.state.kept["s"].coverages[0].since == file.last + 1
        assert stream.round({"s": [row(30)]}).lost == []
        stream.finish()
    counts = [found["n"] for own in answers_in(tmp_path).values() for found in own.get("counted", [])]
    assert sum(counts) == MERGED_FILES + 2


def test_a_start_without_room_for_what_will_be_kept_is_refused_with_the_bytes(tmp_path: Path) -> None:
    stream = Stream(
        "s", {"ts": DataType.parse("timestamp"), "n": DataType.parse("bigint")}, "ts", events_per_second=1_000.0
    )
    query = parse_query("q", "SELECT n FROM s [TUMBLE 1 second]", {"s": stream})
    types = {ExpressionKey("s", name): kind for name, kind in stream.columns.items()}
    plan = make_plan({"s": stream}, [query], types, PlanOptions(tuples=3_600_000_000), PlanningFacts())
    (room,) = planned_room(plan, {})
    assert room.expected > 3_600_000
    with (
        patch.object(LocalStorage, "free_bytes", return_value=100_000),
        pytest.raises(WindloomError, match="no room to keep the tuples of stream 's' for 1 hour") as caught,
    ):
        refuse_without_room([room], LocalStorage(tmp_path))
    assert "97.7 KiB are free" in caught.value.detail
    assert "MiB are expected" in caught.value.detail
    refuse_without_room([room], LocalStorage(tmp_path))  # this disk is large enough


def test_a_round_without_room_for_what_is_kept_is_refused_with_the_bytes(tmp_path: Path) -> None:
    second = 1_000_000
    with life(tmp_path, "tumbling", tuples=3_600 * second) as stream:
        stream.round({"s": [row(0), row(60 * second)]})
        room = patch.object(LocalStorage, "free_bytes", return_value=10_000)
        with room, pytest.raises(WindloomError) as caught:
            stream.round({"s": [row(120 * second)]})
        assert "for 1 hour" in caught.value.message
        assert "9.8 KiB are free" in caught.value.detail
        assert "nothing is lost" in caught.value.hint
        stream.round({"s": [row(120 * second)]})  # there is room again
        assert stream.loop.next_round == 2


def test_coverage_is_known_by_columns_and_conditions() -> None:
    kept = TupleStore(
        (TupleFile("f", 3, 9, 0, 0, 4, 100), TupleFile("g", 10, 19, 1, 1, 4, 100)),
        (Coverage(("a",), ("a > 1",), 3), Coverage(("a", "b"), None, 10)),
    )
    assert kept.since(["a"], "a > 1") == 3
    assert kept.since(["a"], None) == 10
    assert kept.since(["b"], "b > 1") == 10
    assert kept.since(["c"], None) is None
    assert [file.name for file in kept.between(9, 10)] == ["f"]
    assert [coverage.since for coverage in kept.without_before(10).coverages] == [10, 10]
    assert kept.without_before(9) is kept
