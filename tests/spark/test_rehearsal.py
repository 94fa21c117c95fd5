"""Set-up's rehearsal runs, and notes what nearly every process needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from windloom.engine import rehearsal
from windloom.engine.rehearsal import AREAS, rehearse
from windloom.kernels.compiling.loading import load_noted, note_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("area", [area for _, area in AREAS], ids=lambda area: area.__name__)
def test_every_area_can_be_rehearsed(spark: SparkSession, area: Callable[[SparkSession], None]) -> None:
    area(spark)


def test_the_kernels_of_the_first_area_are_noted_when_all_are_done(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLOOM_CACHE", str(tmp_path))
    monkeypatch.setattr(rehearsal, "AREAS", AREAS[:1])
    said: list[str] = []
    rehearse(spark, said.append)
    assert said == ["compiling kernels: sums, averages, extrema (1 of 1)"]
    assert note_path().is_file()
    assert load_noted() > 0
