"""A wide table over time from answers made by hand: any order, pieces, types and keys, against a loop over instants."""

from __future__ import annotations

from bisect import bisect_left
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windloom.answers.wide import WidePart, wide_over_time
from windloom.model import TimeWindow

#: What stands in the columns of an answer: numbers, with and without NULL, and types of other widths.
KINDS = {"n": pa.int64(), "mean": pa.float64(), "word": pa.string(), "exact": pa.decimal128(38, 2), "flag": pa.bool_()}
Row = dict[str, Any]


def answers(rng: np.random.Generator, window: TimeWindow, keys: list[tuple[Any, Any]], first: int, most: int) -> Any:
    """Return rows of some of the windows of some keys; those of a key follow each other, with gaps."""
    rows: list[Row] = []
    for a, b in keys:
        ends = first + window.slide_ticks * np.flatnonzero(rng.random(most) < rng.choice([0.2, 0.9]))
        for end in ends.tolist():
            number = int(rng.integers(1_000))
            mean, flag = None if number % 3 else number / 7, None if number % 5 else True
            values = (end, a, b, number, mean, str(number), Decimal(number) / 100, flag)
            rows.append(dict(zip(["window_end", "a", "b", *KINDS], values, strict=True)))
    return rows


def table_of(rows: list[Row], pieces: int, coded: bool) -> pa.Table:
    kinds = {"window_end": pa.timestamp("us", tz="UTC"), "a": pa.string(), "b": pa.int64(), **KINDS}
    schema = pa.schema(list(kinds.items()))
    cuts = [len(rows) * i // pieces for i in range(pieces + 1)]
    made = []
    for begin, end in pairwise(cuts):
        batch = pa.Table.from_pylist(rows[begin:end], schema)
        made.append(batch.set_column(1, "a", batch["a"].dictionary_encode()) if coded else batch)
    return pa.concat_tables(made)


def by_definition(parts: list[tuple[list[Row], TimeWindow]], until: int | None) -> list[tuple[Any, ...]]:
    """Look for each instant and key whether a window of a query still stands: it ended less than a slide ago."""
    found = []
    instants = sorted({row["window_end"] for rows, _ in parts for row in rows})
    by_key = [{} for _ in parts]  # type: list[dict[tuple[Any, Any], list[Row]]]
    for (rows, _), of_part in zip(parts, by_key, strict=True):
        for row in rows:
            of_part.setdefault((row["a"], row["b"]), []).append(row)
    for key in sorted({key for of_part in by_key for key in of_part}, key=repr):
        own = [row["window_end"] for of_part in by_key for row in of_part.get(key, [])]
        end = max(own) + max(window.slide_ticks for _, window in parts)  # all its answers have been replaced
        for instant in instants[bisect_left(instants, min(own)) : bisect_left(instants, end)]:
            standing = [
                [
                    row
                    for row in of_part.get(key, [])
                    if row["window_end"] <= instant < row["window_end"] + window.slide_ticks
                ]
                for of_part, (_, window) in zip(by_key, parts, strict=True)
            ]
            if any(standing) and (until is None or instant <= until):
                values = [row[0][name] if row else None for row in standing for name in KINDS]
                found.append((key, instant, *values))
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("case", ["in order", "shuffled", "far apart", "many keys"])
def test_a_wide_table_has_the_rows_of_a_loop_over_instants(seed: int, case: str) -> None:
    rng = np.random.default_rng([seed, len(case)])
    far = 1_000_003 if case == "far apart" else 1
    keys: list[tuple[Any, Any]] = [(a, b) for a in ("x", "y", None) for b in (1, None)]
    if case == "many keys":  # each at instants of its own: most pairs of a key and an instant are not there
        keys = [(str(number), number) for number in range(1_500)]
    parts = []
    for slide, offset in ((10, 0), (10, 0), (30, 0), (35, 5), (61, 0)):
        window = TimeWindow(60 * far, slide * far + far // 1_000)  # far apart: without a common step
        if case == "many keys":
            rows = [row for i, key in enumerate(keys) for row in answers(rng, window, [key], i * 1_000, 2)]
        else:
            rows = answers(rng, window, [key for key in keys if rng.random() < 0.8], offset * far, 12)
        if case == "shuffled":
            rows = [rows[i] for i in rng.permutation(len(rows))]
        parts.append((rows, window))
    parts.append(([], TimeWindow(60 * far, 60 * far)))
    until = None if seed % 2 else 137 * far
    made = wide_over_time(
        [
            WidePart(table_of(rows, int(rng.integers(1, 4)), bool(seed % 3)), window, {n: f"{n}{i}" for n in KINDS})
            for i, (rows, window) in enumerate(parts)
        ],
        ["a", "b"],
        "at",
        until,
    )
    made.validate(full=True)
    columns = [made[name].to_pylist() for name in made.column_names[3:]]
    found = list(
        zip(
            zip(made["a"].to_pylist(), made["b"].to_pylist(), strict=True),
            made["at"].cast(pa.int64()).to_pylist(),
            *columns,
            strict=True,
        )
    )
    assert sorted(found, key=repr) == sorted(by_definition(parts, until), key=repr)
    for key in {row[0] for row in found[:200]}:
        instants = [row[1] for row in found if row[0] == key]
        assert instants == sorted(instants)
