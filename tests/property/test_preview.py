"""What a preview of files counts is what a round over the same tuples would observe; the oracle counts row by row."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.catalogs import STREAM, TYPES
from windloom.aggregates.arrow import arrow_type
from windloom.language import parse_query
from windloom.model import Query
from windloom.optimizer import Known, PlanOptions, make_plan
from windloom.plan.observed import Coming, RoundObserved, StreamRound
from windloom.plan.physical import Plan
from windloom.spark.intake import preview as module
from windloom.spark.intake.preview import Preview

Row = dict[str, Any]
COLUMNS = ("tick", "k", "i", "x")
#: Predicates as SQL, and as what they mean.
CONDITIONS: dict[str | None, Callable[[Row], bool]] = {
    None: lambda row: True,
    "i > 0": lambda row: row["i"] is not None and row["i"] > 0,
    "k = 'a' AND x < 2.5": lambda row: row["x"] is not None and row["x"] < 2.5 and row["k"] == "a",
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "tick": st.one_of(st.none(), st.integers(-40, 80)),
            "k": st.sampled_from(["a", "b", None]),
            "i": st.one_of(st.none(), st.integers(-3, 3)),
            "x": st.one_of(st.none(), st.integers(0, 5).map(float)),
        }
    ),
    min_size=1,
    max_size=40,
)


def queries() -> list[Query]:
    """Every predicate with and without groups; two windows each, whose slices begin at multiples of 4 and of 6."""
    return [
        a_query(f"q{number}_{len(groups)}_{slide}", f"RANGE 24 us SLIDE {slide} us", sql, groups)
        for number, sql in enumerate(CONDITIONS)
        for groups in ((), ("k",))
        for slide in (4, 6)
    ]


def a_query(name: str, window: str, where: str | None = None, groups: tuple[str, ...] = ()) -> Query:
    text = f"SELECT sum(x) AS total, max(i) AS most FROM s [{window}]"
    text += "" if where is None else f" WHERE {where}"
    text += f" GROUP BY {', '.join(groups)}" if groups else ""
    return parse_query(name, text, {"s": STREAM})


def a_plan(asked: list[Query]) -> Plan:
    return make_plan({"s": STREAM}, asked, TYPES, PlanOptions(), Known())


def written(folder: str, rows: list[Row], parts: int = 1) -> tuple[str, ...]:
    paths = []
    for part in range(parts):
        own = rows[part::parts]
        columns = {name: pa.array([row[name] for row in own], arrow_type(STREAM.columns[name])) for name in COLUMNS}
        paths.append(str(Path(folder) / f"{part}.parquet"))
        pq.write_table(pa.table(columns), paths[-1])
    return tuple(paths)


def shown(plan: Plan, rows: list[Row], files: tuple[str, ...], preview: Preview | None = None) -> RoundObserved | None:
    known = {"s": StreamRound(len(rows), 10.0, 10.0)}
    found = (preview or Preview())(plan, {"s": Coming(len(rows), files=files)}, known)
    return None if found is None else found()


@settings(deadline=None)  # the first example compiles
@given(rows=ROWS, parts=st.integers(1, 3))
def test_tuples_and_cells_are_counted_as_rows_are(rows: list[Row], parts: int) -> None:
    plan = a_plan(queries())
    with tempfile.TemporaryDirectory() as folder:
        found = shown(plan, rows, written(folder, rows, parts))
    assert found is not None
    timed = [row for row in rows if row["tick"] is not None]
    (stream,) = found.streams.values()
    assert stream.conditions == {sql: sum(map(holds, timed)) for sql, holds in CONDITIONS.items() if sql}
    assert len(found.sets) == 6
    for identity, own in found.sets.items():
        wanted = [row for row in timed if CONDITIONS[identity.predicate or None](row)]
        cells = {(row["tick"] // 4, row["tick"] // 6, row["k"] if identity.grouping else 0) for row in wanted}
        assert (own.tuples, own.cells) == (len(wanted), len(cells))
        assert own.groups == len({cell[2] for cell in cells})
        assert own.slices == pytest.approx(10.0 * 1e6 / 12 * 4)


def test_what_cannot_be_read_as_it_is_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"tick": tick, "k": "a", "i": 1, "x": 1.0} for tick in range(8)]
    plan, files = a_plan(queries()), written(str(tmp_path), rows)
    assert shown(plan, rows, files) is not None
    assert shown(plan, rows, ()) is None, "a source that is no file"
    assert shown(a_plan([]), rows, files) is None, "no query reads the stream any more"
    assert shown(plan, rows, (str(tmp_path / "gone.parquet"),)) is None
    pq.write_table(pq.read_table(files[0]).drop_columns(["x"]), tmp_path / "other.parquet")
    assert shown(plan, rows, (str(tmp_path / "other.parquet"),)) is None, "a column that the frame computes"
    asked = a_query("q", "RANGE 24 us SLIDE 4 us", "soundex(k) = 'A000'")
    assert shown(a_plan([asked]), rows, files) is None, "a function that only Spark knows"
    asked = a_query("q", "SESSION GAP 5 us")
    assert shown(a_plan([asked]), rows, files) is None, "its cells depend on what is kept of earlier rounds"
    monkeypatch.setattr(module, "MOST_TUPLES", 7)
    assert shown(plan, rows, files) is None, "more than can be read in a moment"


def test_scans_are_made_once_and_again_for_other_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, scans = module.woven_scan, []
    monkeypatch.setattr(module, "woven_scan", lambda *given: scans.append(given) or made(*given))
    rows = [{"tick": tick, "k": "a", "i": 1, "x": 1.0} for tick in range(8)]
    files, preview = written(str(tmp_path), rows), Preview()
    for asked, count in ((queries(), 1), (queries(), 1), (queries()[:1], 2), (queries()[:1], 2)):
        assert shown(a_plan(asked), rows, files, preview) is not None
        assert len(scans) == count
