"""Which queries a wide table takes."""

from __future__ import annotations

import pytest

from support.catalogs import make_query
from windloom.engine.results import WideTable
from windloom.errors import WindloomError
from windloom.model import Aggregate, LandmarkWindow, RowsWindow, SessionWindow, TimeWindow, Window


def table_of(window: Window) -> WideTable:
    return WideTable.of("t", "k", ["q"], {"q": make_query("q", window, [Aggregate("count")], ("k",))})


@pytest.mark.parametrize("window", [TimeWindow(8, 4), LandmarkWindow(4)])
def test_windows_that_a_watermark_tells_are_columns(window: Window) -> None:
    assert table_of(window).columns(make_query("q", window, [Aggregate("count")], ("k",))) == {"o0": "q"}


@pytest.mark.parametrize(
    ("window", "fact"),
    [
        (RowsWindow(8, 4), "its windows end at positions, which no watermark tells"),
        (SessionWindow(4), "its sessions end at another tick in every group"),
    ],
)
def test_windows_that_no_watermark_tells_are_refused(window: Window, fact: str) -> None:
    with pytest.raises(WindloomError, match="query 'q' cannot be part of the table 't'") as caught:
        table_of(window)
    assert caught.value.detail == fact
    assert caught.value.hint
