"""EXPLAIN of plans against files; WINDLOOM_UPDATE_GOLDEN=1 writes them anew, for a human to read in the diff."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden.plans import (
    CONSTANTS,
    EMITS,
    FEW,
    JOINS,
    KINDS,
    MIXED,
    ROW_QUERIES,
    SESSIONS,
    joined_plan,
    json_of,
    many_queries,
    plan_of,
    plan_of_relations,
    svg_of,
    text_of,
)
from windloom.explain.sharing import sharing_json, sharing_text
from windloom.model import Version
from windloom.optimizer.sharing_report import report_sharing
from windloom.plan.plan import Plan

_HERE = Path(__file__).parent


def _significant(value: Any) -> Any:
    """Floats to nine digits: the last bits of a logarithm are the processor's own."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: _significant(each) for key, each in value.items()}
    return [_significant(each) for each in value] if isinstance(value, list) else value


def _json(value: dict[str, Any]) -> str:
    return json.dumps(_significant(value), indent=1, ensure_ascii=False) + "\n"


def _sharing(plan: Plan) -> str:
    return sharing_text(plan, report_sharing(plan, CONSTANTS))


_LOW_RATE = {"trades": 0.02}
_TWO_JOINS = JOINS[: JOINS.index("CREATE QUERY unseen")]

_VERSIONS = {"person": Version(3, 12, 4_711, 98_304), "listing": Version(1, 0, None, 2_048)}

_CASES: dict[str, Callable[[], str]] = {
    "relations.txt": lambda: text_of(plan_of_relations(_VERSIONS)),
    "relations_unread.txt": lambda: text_of(plan_of_relations(), query="by_sector"),
    "few_sharing.txt": lambda: _sharing(plan_of(FEW)),
    "odd_sharing.txt": lambda: _sharing(plan_of(FEW, rates=_LOW_RATE, strategy="weave_share", technique="recalculate")),
    "many_sharing.txt": lambda: _sharing(plan_of(many_queries(40))),
    "few_sharing.json": lambda: _json(sharing_json(plan_of(FEW), report_sharing(plan_of(FEW), CONSTANTS))),
    "few.txt": lambda: text_of(plan_of(FEW)),
    "few.json": lambda: _json(json_of(plan_of(FEW))),
    "few_cutty.txt": lambda: text_of(plan_of(FEW, slicing="cutty")),
    "few_no_share.txt": lambda: text_of(plan_of(FEW, strategy="no_share")),
    "kinds.txt": lambda: text_of(plan_of(KINDS)),
    "kinds_sharing.txt": lambda: _sharing(plan_of(KINDS)),
    "one_cumulating.txt": lambda: text_of(plan_of(KINDS), query="today"),
    "one_landmark.txt": lambda: text_of(plan_of(KINDS), query="so_far"),
    "sessions.txt": lambda: text_of(plan_of(SESSIONS)),
    "sessions_sharing.txt": lambda: _sharing(plan_of(SESSIONS)),
    "one_session.txt": lambda: text_of(plan_of(SESSIONS), query="visits"),
    "one_of_rows.txt": lambda: text_of(plan_of(KINDS), query="own_50"),
    "emits.txt": lambda: text_of(plan_of(EMITS)),
    "one_early.txt": lambda: text_of(plan_of(EMITS), query="early"),
    "joins.txt": lambda: text_of(joined_plan()),
    "joins.json": lambda: _json(json_of(joined_plan())),
    "joins_forced.txt": lambda: text_of(joined_plan(_TWO_JOINS, joins="EAP10", fold="slice_matrix")),
    "joins_sharing.txt": lambda: _sharing(joined_plan()),
    "one_join.txt": lambda: text_of(joined_plan(), query="spent"),
    "row_queries.txt": lambda: text_of(joined_plan(ROW_QUERIES)),
    "row_queries.json": lambda: _json(json_of(joined_plan(ROW_QUERIES))),
    "one_row_query.txt": lambda: text_of(joined_plan(ROW_QUERIES), query="near"),
    "few_paper.txt": lambda: text_of(plan_of(FEW), "paper"),
    "few_paper.json": lambda: _json(json_of(plan_of(FEW), "paper")),
    "one_of_few_paper.txt": lambda: text_of(plan_of(FEW), "paper", query="vwap"),
    "mixed.txt": lambda: text_of(plan_of(MIXED, rates={"orders": 250.0})),
    "apart.txt": lambda: text_of(plan_of(FEW, rates=_LOW_RATE, strategy="weave_share", technique="recalculate")),
    "many.txt": lambda: text_of(plan_of(many_queries(40))),
    "one_of_few.txt": lambda: text_of(plan_of(FEW), query="vwap"),
    "one_of_mixed.txt": lambda: text_of(plan_of(MIXED), query="by_venue_997"),
    "one_apart.txt": lambda: text_of(
        plan_of(FEW, rates=_LOW_RATE, strategy="weave_share", technique="recalculate"), query="avg_1h"
    ),
}


@pytest.mark.parametrize("name", _CASES)
def test_explain_reads_as_in_its_golden_file(name: str) -> None:
    path = _HERE / name
    said = _CASES[name]()
    if os.environ.get("WINDLOOM_UPDATE_GOLDEN"):
        path.write_text(said, encoding="utf-8")
    assert said == path.read_text(encoding="utf-8"), "if this is meant, run again with WINDLOOM_UPDATE_GOLDEN=1"


def test_a_plan_with_row_queries_can_be_drawn() -> None:
    assert svg_of(joined_plan(ROW_QUERIES)).startswith("<svg")


def test_every_golden_file_has_its_case() -> None:
    assert {path.name for path in _HERE.iterdir() if path.suffix in (".txt", ".json")} == set(_CASES)
