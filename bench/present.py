"""The table of the sink `current`, with rows of varying lifetimes: a round's update against writing the table anew."""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.fed_rounds import EDGE, MINUTE, FedRound
from bench.measure import Outcome, seconds
from windloom.language.select import parse_query
from windloom.model import DataType, Query, Stream
from windloom.sinks.current import CurrentSink
from windloom.sinks.current_tables import write_rows

#: Pairs that a minute brings, and for how many minutes the longest of them stands: 60 times as many are there.
PAIRS, LONGEST = 100_000, 60
_COLUMNS = {name: DataType.parse(kind) for name, kind in {"ts": "timestamp", "k": "long", "x": "double"}.items()}
_STREAMS = {name: Stream(name, _COLUMNS, time="ts") for name in ("a", "b")}
_TEXT = (
    "SELECT a.k, a.x, b.x AS y FROM a [RANGE 60 minutes SLIDE 1 minute] JOIN b [RANGE 60 minutes SLIDE 1 minute]"
    " ON a.k = b.k EMIT CHANGES"
)


def round_of(query: Query, number: int, rng: np.random.Generator) -> FedRound:
    """The answers of one round: pairs that enter, each with the end of the first window without it."""
    end = number * MINUTE
    lives = rng.integers(1, LONGEST + 1, PAIRS) * MINUTE
    table = pa.table(
        {
            "query": pa.repeat(pa.scalar("pairs"), PAIRS),
            "window_start": pa.array(np.full(PAIRS, end - LONGEST * MINUTE)).cast(EDGE),
            "window_end": pa.array(np.full(PAIRS, end)).cast(EDGE),
            "k": rng.integers(0, 100_000, PAIRS),
            "x": rng.random(PAIRS),
            "y": rng.random(PAIRS),
            "valid_until": pa.array(end + lives).cast(EDGE),
        }
    )
    return FedRound(query, number, table)


def present(repeats: int) -> Outcome:
    query = parse_query("pairs", _TEXT, _STREAMS)
    rng, times, anew = np.random.default_rng(7), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as name:
        sink = CurrentSink(Path(name) / "present", "bench")
        whole, file = None, Path(name) / "whole.parquet"
        for number in range(LONGEST + 2 * repeats + 10):
            minute = round_of(query, number, rng)
            fresh = minute.table.drop_columns("query")
            whole = fresh if whole is None else pa.concat_tables([whole, fresh])
            whole = whole.filter(pa.array(whole["valid_until"].cast(pa.int64()).to_numpy() > number * MINUTE))
            took = seconds(partial(sink.write, number, minute))
            if number >= LONGEST:  # as many come as go
                times.append(took)
                anew.append(seconds(partial(_write, file, whole)))
        rows = pq.read_table(sink_place(Path(name)), partitioning=None).num_rows
    assert whole is not None
    assert rows == whole.num_rows, (rows, whole.num_rows)
    figure = statistics.fmean(times) / statistics.fmean(anew)
    note = f"{rows:,} rows; {statistics.fmean(times):.3f} s against {statistics.fmean(anew):.3f} s per round"
    details = {"rows": rows, "update_seconds": times, "rewrite_seconds": anew, "repeats": repeats}
    return Outcome("update of the current table / writing it anew", figure, "ratio", 0.33, "<=", note, details)


def sink_place(root: Path) -> Path:
    return root / "present" / "pairs"


def _write(file: Path, rows: pa.Table) -> None:
    """All of it, whole or not at all, from rows that are in memory already."""
    waiting = file.with_suffix(".new")
    write_rows(waiting, rows)
    waiting.replace(file)


PRESENT_WORKLOADS = {"present": present}
