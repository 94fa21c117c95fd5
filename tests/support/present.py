"""A stream into the sink `current`, to be killed while somebody reads the tables; and what the tables must be."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from support.emission import STREAMS, Row, asked, bag, draw_rounds, rows_of, run
from support.emission_oracle import last_end
from windloom.model import Emits, Query
from windloom.sinks.registry import choose_sinks, sink

TEXTS = {
    "final": "SELECT k, count(*) AS n FROM s [RANGE 8 us SLIDE 4 us] GROUP BY k",
    "total": "SELECT sum(i) AS n FROM s [TUMBLE 5 us] EMIT EMPTY",
    "changed": "SELECT k, count(*) AS n, max(i) AS m FROM s [RANGE 9 us SLIDE 3 us] GROUP BY k EMIT CHANGES",
    "rows": "SELECT k, i FROM s [RANGE 24 us SLIDE 2 us] WHERE i > 0 EMIT CHANGES",
    "window": "SELECT k, i FROM s [RANGE 6 us SLIDE 3 us]",
    "without": "SELECT k FROM s [TUMBLE 5 us] EXCEPT ALL SELECT k FROM s [TUMBLE 5 us] WHERE i > 2 EMIT CHANGES",
}


def queries() -> dict[str, Query]:
    return {name: asked(text, "", name) for name, text in TEXTS.items()}


def run_present(folder: Path, seed: int, count: int) -> None:
    rounds, chosen = draw_rounds(random.Random(seed), count), queries()
    openers = choose_sinks(
        [sink("current", str(folder / "present"), expiries="3", files="2", buckets="4")], None, folder
    )
    run(folder, rounds, [chosen] * len(rounds), openers=openers)


def shown(folder: Path, name: str) -> list[Row]:
    """What any reader finds, edges of windows as ticks."""
    return rows_in(pq.read_table(folder / "present" / name, partitioning=None))


def rows_in(table: pa.Table) -> list[Row]:
    for edge in {"window_start", "window_end", "valid_until"}.intersection(table.column_names):
        table = table.set_column(table.column_names.index(edge), edge, table[edge].cast(pa.int64()))
    return table.to_pylist()


def present(query: Query, reported: Sequence[Row], end: int) -> list[Row]:
    """The rows that stand in the window that ends at `end`, from all rows reported up to it, by definition."""
    rows = [row for row in reported if row["window_end"] <= end]
    if query.rows is not None and query.rows.tells_end:
        return [row for row in rows if row["valid_until"] > end]
    if query.emission.kind is not Emits.CHANGES:
        return [row for row in rows if row["window_end"] == end]
    held: list[Row] = []
    edges = ("window_start", "window_end", "change")
    keys = [grouping.name for grouping in query.group_by] or [
        name for name in (rows[0] if rows else ()) if name not in edges
    ]
    for row in sorted(rows, key=lambda row: row["window_end"]):
        same = next((held_row for held_row in held if all(held_row[key] == row[key] for key in keys)), None)
        if row["change"] != "insert" and same is not None:
            held.remove(same)
        if row["change"] != "delete":
            held.append({name: value for name, value in row.items() if name != "change"})
    return held


def values(rows: Sequence[Row]) -> list[Mapping[str, object]]:
    """Without edges: of equal rows it does not matter which one went."""
    return [{name: value for name, value in row.items() if not name.startswith("window_")} for row in rows]


def states(folder: Path, seed: int, count: int) -> dict[str, list[object]]:
    """Every state that each table had in an undisturbed run, in order; the first is the empty one."""
    rounds, chosen = draw_rounds(random.Random(seed), count), queries()
    found: dict[str, list[object]] = {name: [bag([])] for name in chosen}
    latest: list[int] = []
    for number, own in enumerate([*rounds, []]):
        latest += [row["tick"] for row in own]
        closed = max(latest) - STREAMS["s"].delay_ticks if latest and number < len(rounds) else None
        for name, query in chosen.items():
            end = last_end(query, latest, closed)
            if end is not None:
                rows = rows_of(folder, name)
                found[name].append(bag(values(present(query, rows, end))))
    return found
