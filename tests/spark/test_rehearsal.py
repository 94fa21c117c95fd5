"""Set-up's rehearsal runs, and notes what nearly every process needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from windloom.expressions import predicate_index
from windloom.kernels.compiling import load_noted, note_path
from windloom.kernels.tuples import signatures
from windloom.weave.roll_up import SignedCells
from windloom_tools import warm_up
from windloom_tools.warm_up import AREAS, many_predicates, rehearse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("area", [area for _, area in AREAS], ids=lambda area: area.__name__)
def test_every_area_can_be_rehearsed(spark: SparkSession, area: Callable[[SparkSession], None]) -> None:
    area(spark)


def test_many_predicates_are_looked_up_and_rolled_up_from_signatures(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise nothing of that would be compiled at set-up."""
    called: list[str] = []

    def noted(owner: object, name: str) -> None:
        method = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given: called.append(name) or method(*given))

    kernels = {"_place", "_place_in_bucket", "_take", "_look_up"}, {"_number", "_number_coded"}
    for owner, names in zip((predicate_index, signatures), kernels, strict=True):
        for name in names:
            noted(owner, name)
    noted(SignedCells, "cells")
    many_predicates(spark)
    assert called.count("cells") >= 8
    assert set(called) == {"cells"}.union(*kernels)


def test_the_kernels_of_the_first_area_are_noted_when_all_are_done(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLOOM_CACHE", str(tmp_path))
    monkeypatch.setattr(warm_up, "AREAS", AREAS[:1])
    said: list[str] = []
    rehearse(spark, said.append)
    assert said == ["compiling kernels: sums, averages, extrema (1 of 1)"]
    assert note_path().is_file()
    assert load_noted() > 0
