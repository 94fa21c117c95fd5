"""Cost constants: which file is read, and what is said of one that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from windloom.errors import WindloomError
from windloom.optimizer.cost.constants import (
    RUNTIME,
    VARIABLE,
    Constants,
    constants_path,
    load_constants,
    read_constants,
    shipped_constants,
)

GOOD: dict[str, Any] = {
    "format": "windloom-costs/3",
    "runtime": dict.fromkeys(RUNTIME, 1.0),
    "techniques": {"prefix_ring": {"add_int": {"cell": 1.0, "row": 2.0}}},
}


def test_the_shipped_constants_know_every_technique_of_every_family() -> None:
    from windloom.kernels.families import FAMILIES
    from windloom.kernels.techniques.registry import allowed
    from windloom.optimizer.cost.papers import cost_name
    from windloom.optimizer.cost.seconds import measured_name
    from windloom.optimizer.cost.work import TERMS

    found = shipped_constants()
    for family in FAMILIES.values():
        for technique in allowed(family):
            name = cost_name(technique, family)
            assert set(found.of(name, measured_name(found, name, family))) <= set(_terms(name)), name
    assert set(TERMS) == set(found.techniques)


def _terms(name: str) -> set[str]:
    import numpy as np

    from windloom.optimizer.cost.work import TERMS, Work

    return set(TERMS[name](Work(*(np.ones(1) for _ in Work.__slots__))))


def test_the_environment_goes_before_the_users_file_and_that_before_what_ships(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert constants_path() == tmp_path / "windloom" / "costs.json"
    assert load_constants().source == "shipped"
    constants_path().parent.mkdir()
    constants_path().write_text(json.dumps(GOOD))
    assert load_constants().source == str(constants_path())
    other = tmp_path / "other.json"
    other.write_text(json.dumps({**GOOD, "runtime": {**GOOD["runtime"], "row": 7.0}}))
    monkeypatch.setenv(VARIABLE, str(other))
    assert load_constants().runtime["row"] == 7.0


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    path = tmp_path / "costs.json"
    monkeypatch.setenv(VARIABLE, str(path))
    for number in (3.0, 4.0):
        path.write_text(json.dumps({**GOOD, "runtime": {**GOOD["runtime"], "row": number}}))
        os.utime(path, ns=(int(number), int(number)))
        assert load_constants().runtime["row"] == number


def test_what_is_written_is_what_is_read() -> None:
    found = read_constants(shipped_constants().to_json(), "again")
    assert (found.runtime, found.techniques) == (shipped_constants().runtime, shipped_constants().techniques)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "are damaged\nthey are not JSON"),
        ("[1, 2]", "are damaged\nthey do not begin with a format"),
        (
            json.dumps({**GOOD, "format": "windloom-costs/2"}),
            "belong to another version of windloom\ntheir format is windloom-costs/2",
        ),
        (json.dumps({**GOOD, "runtime": {"row": 1.0}}), "'runtime' lacks 'job'"),
        (json.dumps({**GOOD, "runtime": {**GOOD["runtime"], "row": -1.0}}), "'runtime' must be numbers"),
        (json.dumps({**GOOD, "runtime": {**GOOD["runtime"], "row": "fast"}}), "'runtime' must be numbers"),
        (json.dumps(GOOD).replace("2.0", "NaN"), "'techniques' must be numbers"),
        (json.dumps({**GOOD, "techniques": {"prefix_ring": 3}}), "'techniques' must be numbers"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_way_out(text: str, complaint: str) -> None:
    with pytest.raises(WindloomError, match=complaint) as error:
        read_constants(text, "mine.json")
    assert "'mine.json'" in error.value.message
    assert "windloom calibrate" in error.value.hint


def test_a_missing_file_of_the_environment_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere.json"))
    with pytest.raises(WindloomError, match="cannot read the cost constants"):
        load_constants()


def test_a_technique_without_constants_says_how_to_measure_it() -> None:
    with pytest.raises(WindloomError, match="cost of technique 'new' on add_int is not known"):
        Constants({}, {}).of("new", "add_int")
