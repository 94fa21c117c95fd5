"""Streams for tests of EMIT: the same query with EMIT FINAL and with another clause, through rounds and crashes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.catalogs import COLUMNS, STREAM, TYPES
from support.emission_oracle import Row
from support.micro_batches import MicroBatches, answers_in
from windloom.language.select import parse_query
from windloom.model import DataType, ExpressionKey, Query

STREAMS = {"s": replace(STREAM, delay_ticks=4)}
_WINDOWS = ("RANGE 8 us SLIDE 4 us", "TUMBLE 5 us OFFSET 2 us", "RANGE 3 us SLIDE 4 us", "RANGE 9 us SLIDE 3 us")
_SELECTED = (
    "count(*) AS n",
    "sum(i) AS n",
    "count(*) AS n, coalesce(sum(i), -1) AS t",
    "max(x) AS n",
    "top(2, i) AS n",
    "count(i) + 1 AS n",
)


def draw_text(rng: random.Random, *, landmarks: bool) -> str:
    """A query without EMIT."""
    window = rng.choice((*_WINDOWS, "LANDMARK SLIDE 5 us") if landmarks else _WINDOWS)
    groups = rng.choice(["", "k", "k, f"])
    selected = ", ".join(filter(None, [groups, rng.choice(_SELECTED)]))
    where = rng.choice(["", "", " WHERE i > 2"])
    grouped = f" GROUP BY {groups}" if groups else ""
    having = rng.choice(["", "", " HAVING count(*) > 1", " HAVING count(*) < 3"])
    return f"SELECT {selected} FROM s [{window}]{where}{grouped}{having}"


def asked(text: str, emit: str, name: str) -> Query:
    return parse_query(name, f"{text} {emit}", STREAMS)


def draw_rounds(rng: random.Random, count: int) -> list[list[dict[str, Any]]]:
    """Tuples in disorder, some late, with pauses in which groups vanish."""
    rounds, tick = [], 0
    for _ in range(count):
        tick += rng.choice([0, 3, 7, 15])
        rounds.append(
            [
                {
                    "tick": tick + rng.randrange(-8, 9),
                    "k": rng.choice(["x", "y", None]),
                    "f": rng.choice([1.0, float("nan")]),
                    "i": rng.randrange(5),
                    "x": rng.choice([1.0, 2.0, float("nan"), None]),
                }
                for _ in range(rng.randrange(0, 6))
            ]
        )
    return rounds


def run(
    folder: Path,
    rounds: Sequence[Sequence[Row]],
    queries: Sequence[Mapping[str, Query]],
    *,
    finishes: bool = True,
    **given: Any,
) -> None:
    """From where the checkpoint is to the end of the stream; `queries` run in the round of their place."""
    types = {**TYPES, **{key: kind for own in queries for query in own.values() for key, kind in _types(query)}}
    with MicroBatches(folder, STREAMS, types=types, **given) as life:
        while life.loop.next_round < len(rounds):
            life.change(queries[life.loop.next_round])
            life.round({"s": rounds[life.loop.next_round]})
        if finishes and life.loop.next_round == len(rounds):
            life.finish()


def _types(query: Query) -> Iterator[tuple[ExpressionKey, DataType]]:
    """Of columns that a join qualifies."""
    for relation, expression in query.evaluated:
        column = expression.sql.rpartition(".")[2]
        yield ExpressionKey(relation, expression.sql), COLUMNS.get(column, DataType.parse("boolean"))


def rows_of(folder: Path, name: str) -> list[Row]:
    """What a query has reported, round after round."""
    return [row for _, found in sorted(answers_in(folder).items()) for row in found.get(name, [])]


def bag(rows: Sequence[Row]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)
