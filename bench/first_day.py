"""What a new user does with many answers: writes them to Parquet, takes them as Arrow, puts them side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.measure import Outcome, in_fresh_process, paired, resident_bytes, watching_memory
from bench.sessions import session
from windloom import Loom

PAYMENTS, CARDS, DAY = 900_000, 2_400, 86_400_000_000
FIRST = 1_767_571_200_000_000
GIB, MIB = 1 << 30, 1 << 20
#: The most bytes above the start that writing answers may take in the driver.
WRITING = 3 * GIB // 2
_FIGURES = [
    "count(*) AS n",
    "sum(amount) AS total",
    "avg(amount) AS mean",
    "max(amount) AS high",
    "stddev(amount) AS sd",
]
_RANGES = ["1 hour", "90 minutes", "2 hours", "3 hours", "4 hours", "6 hours", "8 hours", "12 hours", "1 day", "2 days"]
#: Three windows that end together.
_WINDOWS = ["[TUMBLE 5 minutes]", "[RANGE 1 hour SLIDE 5 minutes]", "[RANGE 6 hours SLIDE 5 minutes]"]


@contextmanager
def payments(rows: int, cards: int) -> Iterator[Path]:
    """Yield a Parquet file of a day of payments."""
    rng = np.random.default_rng(33)
    table = pa.table(
        {
            "ts": pa.array(np.sort(rng.integers(0, DAY, rows)) + FIRST).cast(pa.timestamp("us", tz="UTC")),
            "card": pa.array(rng.integers(0, cards, rows)).cast(pa.string()),
            "amount": np.round(rng.exponential(40, rows), 2),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table, Path(folder) / "payments.parquet")
        yield Path(folder) / "payments.parquet"


def _loom(file: Path) -> Loom:
    loom = Loom(session())
    loom.stream("payments", str(file), time="ts")
    return loom


def _hundred(file: Path, queries: int = 100) -> Loom:
    """Return a loom whose queries have about 370,000 answers each."""
    loom = _loom(file)
    for number in range(queries):
        figures = f"{_FIGURES[number % 5]}, {_FIGURES[(number // 5 + 1) % 5].replace(' AS ', ' AS b_')}"
        window = f"[RANGE {_RANGES[number % len(_RANGES)]} SLIDE {12 + number % 3} minutes]"
        where = f" WHERE amount > {number // 50}" if number >= 50 else ""
        loom.query(f"q{number}", f"SELECT card, {figures} FROM payments {window}{where} GROUP BY card")
    return loom


def peak_of_writing(file: Path, out: Path) -> tuple[int, int]:
    """Return the bytes of this process above its start while answers are written, and how many answers there are."""
    loom = _hundred(file)
    _hundred(file, 5).run(out=out / "warm")  # the kernels are loaded
    start = resident_bytes()
    with watching_memory() as peak:
        results = loom.run(out=out / "answers")
        return peak() - start, results.stats.results


def peak_of_arrow(file: Path) -> tuple[int, int, int]:
    """Return the bytes above the start while all answers are taken as Arrow, those of the answers, and their number."""
    loom = _hundred(file)
    _hundred(file, 5).run()
    start = resident_bytes()
    with watching_memory() as peak:
        results = loom.run()
        tables = [results.arrow(name) for name in results]
        above = peak() - start
    return above, sum(table.nbytes for table in tables), sum(table.num_rows for table in tables)


def answers_to_parquet(repeats: int, *, events: int = PAYMENTS) -> Outcome:
    with payments(events, CARDS) as file, tempfile.TemporaryDirectory() as out:
        above, rows = in_fresh_process(peak_of_writing, file, Path(out))
    note = f"{above / MIB:,.0f} MiB above the start for {rows:,} answers of 100 queries over {events:,} payments"
    return Outcome(
        "driver memory while answers go to Parquet", above / GIB, "GiB", WRITING / GIB, "<=", note, {"rows": rows}
    )


def answers_to_arrow(repeats: int, *, events: int = PAYMENTS) -> Outcome:
    with payments(events, CARDS) as file:
        above, size, rows = in_fresh_process(peak_of_arrow, file)
    note = f"{above / MIB:,.0f} MiB above the start, the answers {size / MIB:,.0f} MiB: {rows:,} rows"
    return Outcome(
        "driver memory / bytes of the answers in Arrow", above / size, "ratio", 2, "<=", note, {"rows": rows}
    )


def wide_over_time(repeats: int, *, events: int = PAYMENTS) -> Outcome:
    """Thirty metrics over three windows each, once as a wide table over time, once as ninety Arrow tables."""
    with payments(events, CARDS // 4) as file:
        loom = _loom(file)
        names = []
        for number in range(30):
            for window, text in zip("abc", _WINDOWS, strict=True):
                names.append(f"m{number}{window}")
                where = f" WHERE amount > {number // 5 * 5}" if number >= 5 else ""
                figure = _FIGURES[number % 5]
                loom.query(names[-1], f"SELECT card, {figure} FROM payments {text}{where} GROUP BY card")
        loom.table("wide", by="card", queries=names)
        table = loom.run().table("wide", at="every")

        def apart() -> int:
            results = loom.run()
            return sum(results.arrow(name).num_rows for name in names)

        rows = apart()
        found = paired(apart, lambda: loom.run().table("wide", at="every"), repeats, warm=1)
    note = (
        f"{table.num_rows:,} rows of {len(names)} columns from {rows:,} answers;"
        f" {found['our_seconds']:.2f} s against {found['base_seconds']:.2f} s"
    )
    return Outcome(
        "30 metrics x 3 windows, wide over time / apart",
        1 / float(str(found["ratio"])),
        "ratio",
        1.2,
        "<=",
        note,
        found,
    )


FIRST_DAY_WORKLOADS = {
    "answers_to_parquet": answers_to_parquet,
    "answers_to_arrow": answers_to_arrow,
    "wide_over_time": wide_over_time,
}
