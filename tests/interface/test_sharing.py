"""`windloom explain --sharing` and `--what-if`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import Command

QUESTION = "SELECT symbol, max(price) AS m FROM trades [RANGE 1 minute SLIDE 7 seconds] GROUP BY symbol"


def test_sharing_is_told_in_words_and_as_json(windloom: Command, desk: Path) -> None:
    outcome = windloom("explain", desk / "desk.cql", "--sharing")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("Sharing: 3 queries")
    assert "sharing saves" in outcome.out
    found = json.loads(windloom("explain", desk / "desk.cql", "--sharing", "--json").out)
    parts = found["sharing"]["queries"]
    assert sum(part["seconds"] for part in parts.values()) == pytest.approx(found["sharing"]["total"])


def test_one_more_query_is_priced(windloom: Command, desk: Path) -> None:
    outcome = windloom("explain", desk / "desk.cql", "--what-if", QUESTION)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("WhatIf: adds ")
    found = json.loads(windloom("explain", desk / "desk.cql", "--what-if", QUESTION, "--json").out)
    assert found["added"] == pytest.approx(found["after"] - found["before"])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--sharing", "--format", "svg"), "sharing cannot be shown of a picture"),
        (("--sharing", "--query", "flow"), "sharing cannot be shown of one query"),
        (("--what-if", QUESTION, "--sharing"), "--what-if shows one thing only"),
        (("--what-if", "SELECT"), "what if"),
    ],
)
def test_what_cannot_be_shown_together_is_refused(
    windloom: Command, desk: Path, options: tuple[str, ...], complaint: str
) -> None:
    outcome = windloom("explain", desk / "desk.cql", *options)
    assert outcome.code == 2
    assert complaint in outcome.err
