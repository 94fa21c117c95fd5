from __future__ import annotations

import pytest

from windloom.errors import WindloomError
from windloom.model import TimeWindow
from windloom.model.windows import MAX_TICKS


@pytest.mark.parametrize(("offset", "kept"), [(0, 0), (3, 3), (5, 0), (-2, 3), (-7, 3), (13, 3)])
def test_an_offset_counts_modulo_the_slide(offset: int, kept: int) -> None:
    assert TimeWindow(10, 5, offset) == TimeWindow(10, 5, kept)
    assert TimeWindow(10, 5, offset).offset_ticks == kept


@pytest.mark.parametrize(
    ("length", "slide", "words"),
    [
        (0, 5, "the range of a window must be positive, not 0 seconds"),
        (-1_000_000, 5, "the range of a window must be positive, not -1 second"),
        (5, 0, "the slide of a window must be positive"),
        (5, -5, "the slide of a window must be positive"),
        (MAX_TICKS + 1, 5, "is too long"),
        (5, MAX_TICKS + 1, "is too long"),
    ],
)
def test_lengths_that_make_no_window_are_refused(length: int, slide: int, words: str) -> None:
    with pytest.raises(WindloomError) as caught:
        TimeWindow(length, slide)
    assert words in caught.value.message
    assert caught.value.hint


def test_the_longest_windows_are_accepted() -> None:
    assert TimeWindow(MAX_TICKS, MAX_TICKS).is_tumbling


def test_windows_read_as_they_are_written() -> None:
    second = 1_000_000
    assert str(TimeWindow(3600 * second, 60 * second)) == "[RANGE 1 hour SLIDE 1 minute]"
    assert str(TimeWindow(60 * second, 60 * second, 5 * second)) == "[TUMBLE 1 minute OFFSET 5 seconds]"
    assert TimeWindow(5, 20).overlap == 0.25
