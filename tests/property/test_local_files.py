"""Random predicates on files that the driver reads itself, against an evaluator that knows no Windloom; no Spark."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.predicates import COLUMNS, LITERALS, Grammar, evaluate, random_row
from windloom.engine.registry import Registry
from windloom.expressions import predicate_index
from windloom.kernels.tuples.signatures import SIGNATURE_BITS
from windloom.language.catalog import parse_catalog
from windloom.model import DataType
from windloom.model.types import arrow_type
from windloom.optimizer.facts import PlanningFacts
from windloom.optimizer.stages import PlanOptions, make_plan
from windloom.plan.scans import WovenScan
from windloom.weave.files import file_tuples

PREDICATES = 120
_FIRST = datetime(2024, 1, 1, tzinfo=UTC)
_STREAM = f"CREATE STREAM events ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())}) TIME ts;"
_WINDOW = "FROM events [TUMBLE 10 seconds]"

Rows = list[Mapping[str, Any]]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Rows]:
    """Files of several row groups, some with times of 96 bits, and their tuples in the same order."""
    rng, folder = random.Random(23), tmp_path_factory.mktemp("events")
    rows: Rows = []
    for number in range(3):
        own = [{"ts": _FIRST + timedelta(seconds=rng.randrange(60)), **random_row(rng.choice)} for _ in range(120)]
        kinds = {name: arrow_type(DataType.parse(kind)) for name, kind in COLUMNS.items()}
        table = pa.table({name: pa.array([row[name] for row in own], kind) for name, kind in kinds.items()})
        old = {"use_deprecated_int96_timestamps": True, "store_schema": False} if number == 0 else {}
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=50, **old)
        rows += own
    return sorted(str(path) for path in folder.iterdir()), rows


def projected(files: list[str], *wheres: str) -> tuple[WovenScan, pa.Table] | None:
    """None if only Spark knows a predicate."""

    class NotHereError(Exception):
        pass

    def no_session() -> None:
        raise NotHereError

    registry = Registry(no_session)  # type: ignore[arg-type]
    (declared,) = parse_catalog(_STREAM, source="test").streams
    stream = registry.streams["events"] = declared.stream
    for number, where in enumerate(wheres):
        registry.add_query(f"some{number}", f"SELECT s, max(x) AS m {_WINDOW} WHERE {where} GROUP BY s")
    registry.add_query("all", f"SELECT count(*) AS n {_WINDOW}")
    try:
        types = registry.types()
    except NotHereError:
        return None
    known = PlanningFacts(files={"events": frozenset(COLUMNS)})
    plan = make_plan(registry.sources, registry.queries.values(), types, PlanOptions(intake="woven"), known)
    (scan,) = plan.scans
    assert isinstance(scan, WovenScan)
    if scan.local is None:
        return None
    return scan, pa.concat_tables(file_tuples(scan, stream, files, portion=3_000))


def test_signatures_say_which_tuples_satisfy_a_predicate(stored: tuple[list[str], Rows]) -> None:
    files, rows = stored
    grammar, compared = Grammar(random.Random(5).choice), 0
    for _ in range(PREDICATES):
        where = grammar.predicate(2)
        found = projected(files, where)
        if found is None:
            continue
        scan, table = found
        ticks = [round(row["ts"].timestamp() * 1_000_000) for row in rows]
        assert table["tick"].to_pylist() == ticks
        assert len(scan.signature.predicates) <= 1
        if scan.signature.predicates:  # a predicate that is never or always satisfied has no bit
            expected = [int(evaluate(where, dict(row)) is True) for row in rows]
            assert table["s0"].to_pylist() == expected, where
            compared += 1
    assert compared > PREDICATES // 3


@pytest.mark.parametrize("count", [2, 9, 40, 64, 130, 200])
def test_predicates_that_are_looked_up_hold_for_the_same_tuples(
    stored: tuple[list[str], Rows], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All at once: comparisons of a few columns with constants, and among them others, which are evaluated."""
    monkeypatch.setattr(predicate_index, "TUPLES_PER_ENTRY", 0)
    monkeypatch.setattr(predicate_index, "PREDICATES_PER_SUBJECT", 0)
    files, rows = stored
    rng = random.Random(count)
    some, others = (Grammar(rng.choice, columns) for columns in (("a", "b", "x", "f", "x * 2"), tuple(LITERALS)))
    wheres: list[str] = []
    while len(wheres) < count:
        where = (others if rng.random() < 0.1 else some).predicate(2)
        if projected(files[:1], where) is not None:
            wheres.append(where)
    found = projected(files, *wheres)
    assert found is not None
    scan, table = found
    assert scan.local is not None
    looked_up = sum(len(cluster.bits) for cluster in predicate_index.clusters(scan.local.predicates))
    assert 4 * looked_up >= len(scan.local.predicates)
    for bit, predicate in enumerate(scan.signature.predicates):
        expected = [int(evaluate(predicate.sql, dict(row)) is True) for row in rows]
        word = table[f"s{bit // SIGNATURE_BITS}"].to_numpy()
        assert ((word >> (bit % SIGNATURE_BITS)) & 1).tolist() == expected, predicate.sql


def test_files_are_read_in_order_of_time_however_they_are_listed(tmp_path: Path) -> None:
    """So portions cover little time, and the cells of one follow those of another."""
    draw, kinds = random.Random(4), {name: arrow_type(DataType.parse(kind)) for name, kind in COLUMNS.items()}
    for number, minute in enumerate(draw.sample(range(6), 6)):
        own = [
            {"ts": _FIRST + timedelta(minutes=minute, seconds=draw.randrange(60)), **random_row(draw.choice)}
            for _ in range(30)
        ]
        table = pa.table({name: pa.array([row[name] for row in own], kind) for name, kind in kinds.items()})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=20)
    found = projected(sorted(map(str, tmp_path.iterdir())), "x > 0")
    assert found is not None
    minutes = [tick // 60_000_000 for tick in found[1]["tick"].to_pylist()]
    assert minutes == sorted(minutes)
    assert len(minutes) == 6 * 30
