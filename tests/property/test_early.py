"""EMIT EARLY in streams: provisional rows are what the oracle answers over the tuples that have come so far.

The same stream runs the same query twice, once with EMIT FINAL, whose rows are the final ones of the other.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.emission import STREAMS, Row, asked, bag, draw_rounds, draw_text, run
from support.emission_oracle import early, last_words
from support.micro_batches import CrashError, answers_in, crash_after
from support.present import rows_in, shown
from windloom.checkpoint.storage import LocalStorage
from windloom.model import Query
from windloom.sinks.live import LiveSink
from windloom.sinks.registry import choose_sinks, sink
from windloom_tools.oracle.answers import answer, answer_from
from windloom_tools.oracle.joins import answer_join
from windloom_tools.oracle.scalars import scalar

SEEDS = st.integers(0, 100_000)
DELAY = STREAMS["s"].delay_ticks
JOIN = (
    "SELECT l.k AS k, count(*) AS n, sum(r.i) AS t FROM s [RANGE 8 us SLIDE 4 us] AS l"
    " JOIN s [RANGE 4 us SLIDE 4 us] AS r ON l.i = r.i GROUP BY l.k"
)
HAVING = "SELECT k, count(*) AS n FROM s [RANGE 9 us SLIDE 3 us] GROUP BY k HAVING count(*) < 3"


def open_rows(query: Query, arrived: Sequence[Row], first: int, closed: int) -> list[Row]:
    """The oracle over all tuples that have come, of windows that are open."""
    if query.join is not None:
        rows = answer_join(query, {"s": arrived})
    else:
        passing = [row for row in arrived if query.where is None or scalar(query.where.sql)(row) is True]
        if query.window.extent_ticks is None:
            last = query.window.last_start(max(row["tick"] for row in arrived)) + query.window.slide_ticks
            rows = answer_from(query, passing, query.window.last_start(first), last)
        else:
            rows = answer(query, passing)
    return [row for row in rows if row["window_end"] > closed]


def expected(
    query: Query, rounds: Sequence[Sequence[Row]], final: Mapping[int, Sequence[Row]]
) -> list[list[dict[str, Any]]]:
    """What each round reports, the one that finishes the stream included."""
    every, standing, found = query.emission.every_ticks, dict[Any, Row](), []
    arrived: list[Row] = []
    passed = first = closed = None
    for number, rows in enumerate(rounds):
        if rows and (first is None or closed is None or first >= closed):  # the landmark is not settled yet
            first = min([row["tick"] for row in rows] + ([] if first is None else [first]))
        arrived += rows
        if not arrived:
            found.append([])
            continue
        latest = max(row["tick"] for row in arrived)
        before, passed, closed = passed, latest // every * every, latest - DELAY
        shown = open_rows(query, arrived, first, closed) if before is None or passed > before else None
        found.append(early(query, standing, final.get(number, []), shown, closed, passed))
    found.append(early(query, standing, final.get(len(rounds), []), None, 2**62, 0))
    assert not standing
    return found


def reported(folder: Path, name: str) -> dict[int, list[Row]]:
    found = {number: own[name] for number, own in answers_in(folder).items() if name in own}
    for row in (row for rows in found.values() for row in rows):
        if row.get("as_of") is not None:
            row["as_of"] = pa.scalar(row["as_of"]).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).as_py()
    return found


@settings(max_examples=examples(60), deadline=None)
@given(seed=SEEDS, every=st.sampled_from([1, 3, 7, 20]))
def test_provisional_rows_are_those_of_the_tuples_that_have_come(seed: int, every: int) -> None:
    rng = random.Random(seed)
    text, rounds = draw_text(rng, landmarks=True), draw_rounds(rng, rng.randrange(1, 9))
    if rng.random() < 0.25:
        text = JOIN
    queries = {"q": asked(text, f"EMIT EARLY EVERY {every} us", "q"), "final": asked(text, "", "final")}
    with tempfile.TemporaryDirectory() as name:
        run(Path(name), rounds, [queries] * len(rounds))
        found, final = reported(Path(name), "q"), reported(Path(name), "final")
    for number, own in enumerate(expected(queries["q"], rounds, final)):
        assert bag(found.get(number, [])) == bag(own), (number, text)
    every_row = [row for _, rows in sorted(found.items()) for row in rows]
    left = [
        {key: value for key, value in row.items() if key not in ("report", "as_of")}
        for row in last_words(queries["q"], every_row)
    ]
    assert bag(left) == bag([row for rows in final.values() for row in rows]), text


@settings(max_examples=examples(20), deadline=None)
@given(seed=SEEDS)
def test_final_rows_do_not_depend_on_how_the_stream_is_cut(seed: int) -> None:
    rng = random.Random(seed)
    query = asked(draw_text(rng, landmarks=True), "EMIT EARLY EVERY 5 us", "q")
    tuples = [row for rows in draw_rounds(rng, 5) for row in rows]
    order = sorted(tuples, key=lambda row: row["tick"] + rng.randrange(DELAY))  # so that no tuple is late
    found = []
    for _ in range(2):
        cuts = sorted(rng.randrange(len(order) + 1) for _ in range(rng.randrange(6)))
        rounds = [order[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(order)], strict=True)]
        with tempfile.TemporaryDirectory() as name:
            run(Path(name), rounds, [{"q": query}] * len(rounds))
            reports = [row for _, rows in sorted(reported(Path(name), "q").items()) for row in rows]
        found.append(bag(last_words(query, reports)))
        assert found[-1] == bag([row for row in reports if row["report"] == "final"])
    assert found[0] == found[1]


@settings(max_examples=examples(16), deadline=None)
@given(seed=SEEDS, crashes=st.lists(st.integers(0, 80), max_size=4))
def test_what_sinks_show_is_the_last_word_also_after_crashes(seed: int, crashes: list[int]) -> None:
    rng = random.Random(seed)
    rounds = draw_rounds(rng, 6)
    query = asked(rng.choice([HAVING, JOIN, draw_text(rng, landmarks=True)]), "EMIT EARLY EVERY 4 us", "q")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for count in range(1, len(rounds) + 1):
            openers = choose_sinks([sink("current", str(folder / "present")), "live"], None, folder)
            given = {"openers": {**openers, "live": lambda _: LiveSink(LocalStorage(folder / "live"))}}
            for crash in crashes[:1]:
                with suppress(CrashError), crash_after(crash):
                    run(folder, rounds[:count], [{"q": query}] * count, finishes=False, **given)
            crashes = crashes[1:]
            run(folder, rounds[:count], [{"q": query}] * count, finishes=False, **given)
            reports = [row for number, rows in sorted(reported(folder, "q").items()) for row in rows]
            check_shown(
                query, last_words(query, reports), [row["tick"] for rows in rounds[:count] for row in rows], folder
            )


def check_shown(query: Query, words: Sequence[Row], ticks: Sequence[int], folder: Path) -> None:
    """The sink `current` shows the last closed window and the open ones, `live` the last final row of each group."""
    early = [row for row in words if row["report"] == "early"]
    final = [row for row in words if row["report"] == "final"]
    if ticks:
        window = query.window
        closed = max(ticks) - DELAY
        end = closed - (closed - window.end_ticks) % window.slide_ticks
        present = [*early, *(row for row in final if row["window_end"] == end)]
        assert bag(_plain(shown(folder, "q"))) == bag(present)
    groups = [grouping.name for grouping in query.group_by]
    latest = {repr([row[name] for name in groups]): row for row in sorted(final, key=lambda row: row["window_end"])}
    tables = [LiveSink(LocalStorage(folder / "live")).rows(name.stem) for name in (folder / "live").glob("*.parquet")]
    held = [row for table in tables for row in _plain(rows_in(table.drop_columns("query")))]
    assert bag(held) == bag([*early, *latest.values()])


def _plain(rows: Sequence[Row]) -> list[Row]:
    for row in rows:
        if row["as_of"] is not None and not isinstance(row["as_of"], int):
            row["as_of"] = pa.scalar(row["as_of"]).cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).as_py()
    return list(rows)


def test_a_group_that_having_leaves_out_is_withdrawn(tmp_path: Path) -> None:
    def tuples(*ticks: int) -> list[Row]:
        return [{"tick": tick, "k": "x", "i": 1, "f": 1.0, "x": 1.0} for tick in ticks]

    text = "SELECT k, count(*) AS n FROM s [TUMBLE 20 us] GROUP BY k HAVING count(*) < 3"
    query = {"q": asked(text, "EMIT EARLY EVERY 5 us", "q")}
    rounds = [tuples(1, 2), tuples(3), tuples(6), tuples(7), tuples(24)]
    run(tmp_path, rounds, [query] * len(rounds))
    assert {
        number: [(row["window_end"], row["n"], row["report"], row["as_of"]) for row in rows]
        for number, rows in reported(tmp_path, "q").items()
    } == {
        0: [(20, 2, "early", 0)],
        2: [(20, None, "withdrawn", 5)],  # the round before has passed no multiple of 5
        4: [(40, 1, "early", 20)],
        5: [(40, 1, "final", None)],
    }


def test_a_query_that_is_replaced_withdraws_what_it_does_not_report(tmp_path: Path) -> None:
    text = "SELECT k, count(*) AS n FROM s [TUMBLE 20 us] GROUP BY k HAVING count(*)"
    first, second = (asked(f"{text} {having}", "EMIT EARLY EVERY 50 us", "q") for having in ("> 0", "> 1"))
    tuples = [{"tick": 1, "k": k, "i": 1, "f": 1.0, "x": 1.0} for k in "xyy"]
    run(tmp_path, [tuples, []], [{"q": first}, {"q": second}], history_ticks=50)
    assert {
        number: sorted((row["k"], row["n"], row["report"], row["as_of"]) for row in rows)
        for number, rows in reported(tmp_path, "q").items()
    } == {
        0: [("x", 1, "early", 0), ("y", 2, "early", 0)],
        1: [("x", None, "withdrawn", 0)],
        2: [("y", 2, "final", None)],
    }
