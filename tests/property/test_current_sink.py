"""The sink `current`: at any instant, whatever crashes, a reader finds the present result of each query."""

from __future__ import annotations

import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.emission import bag
from support.lives import start_life
from support.micro_batches import CrashError, crash_after
from support.present import TEXTS, rows_in, run_present, shown, states, values


@settings(max_examples=examples(12), deadline=None)
@given(seed=st.integers(0, 10_000), crashes=st.lists(st.integers(0, 250), max_size=3), count=st.integers(1, 8))
def test_after_any_crashes_the_tables_are_the_present_results(seed: int, crashes: list[int], count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        for crash in crashes:
            with suppress(CrashError), crash_after(crash):
                run_present(Path(name), seed, count)
        run_present(Path(name), seed, count)
        for query, expected in states(Path(name), seed, count).items():
            assert bag(values(shown(Path(name), query))) == expected[-1], query


def test_a_reader_sees_only_states_that_existed_while_the_writer_is_killed(tmp_path: Path) -> None:
    """kill -9 at many points of a real process, and a reader that opens the tables all the time."""
    seed, count = 11, 14
    run_present(tmp_path / "undisturbed", seed, count)
    existed = states(tmp_path / "undisturbed", seed, count)
    seen: dict[str, set[str]] = {name: set() for name in TEXTS}
    for fault in ("before sink:20", "after sink:13", "before commit:2", None):
        process = start_life(run_present, tmp_path / "killed", seed, count, fault=fault)
        while process.is_alive():
            _poll(tmp_path / "killed", existed, seen)
            time.sleep(0.002)
        assert process.exitcode == (0 if fault is None else -signal.SIGKILL), fault
        _poll(tmp_path / "killed", existed, seen)
    for name in TEXTS:
        assert bag(values(shown(tmp_path / "killed", name))) == existed[name][-1]
    assert sum(len(found) for found in seen.values()) > 2 * len(TEXTS)


def _poll(folder: Path, existed: dict[str, list[object]], seen: dict[str, set[str]]) -> None:
    for name in TEXTS:
        link = folder / "present" / name
        # A reader that lists and opens by the link may be overtaken, and finds no file; one that resolves it is not.
        with suppress(FileNotFoundError):
            found = bag(values(rows_in(pq.read_table(link, partitioning=None))))
            assert found in existed[name], name
            seen[name].add(repr(sorted(found.items())))
        if link.is_symlink():
            table = pq.read_table(link.resolve(), partitioning=None)
            assert bag(values(rows_in(table))) in existed[name], name
