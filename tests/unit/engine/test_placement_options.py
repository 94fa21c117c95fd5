"""A stream runs on the driver; who asks for executors is shown the Spark operator."""

from __future__ import annotations

from typing import Any

import pytest

from windloom.engine.options import StreamOptions
from windloom.errors import WindloomError


def options(**given: Any) -> StreamOptions:
    usual: dict[str, Any] = {
        "finish": False,
        "idle_after": None,
        "keep": None,
        "untimed": "skip",
        "snapshot_rounds": 10,
    }
    return StreamOptions.of(None, **usual, **given)


def test_the_driver_may_be_named() -> None:
    assert options(placement="driver") == options()


def test_executors_and_unknown_placements_are_refused() -> None:
    with pytest.raises(WindloomError, match="runs on the driver, and not on executors") as raised:
        options(placement="executors")
    assert "loom.answers().writeStream" in raised.value.hint
    with pytest.raises(WindloomError, match="unknown placement 'auto'"):
        options(placement="auto")
