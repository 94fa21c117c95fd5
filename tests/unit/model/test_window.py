from __future__ import annotations

import pytest

from windloom.errors import WindloomError
from windloom.model import LandmarkWindow, RowsWindow, SessionWindow, TimeWindow, Window
from windloom.model.windows import KINDS, MAX_TICKS
from windloom.model.windows.cumulate import CumulateWindow


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


@pytest.mark.parametrize("gap", [0, -5, MAX_TICKS + 1])
def test_gaps_that_make_no_session_are_refused(gap: int) -> None:
    with pytest.raises(WindloomError, match="gap"):
        SessionWindow(gap)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_says_all_that_is_asked_of_it(kind: str) -> None:
    made: dict[str, Window] = {
        "range": TimeWindow(40, 20),
        "landmark": LandmarkWindow(20),
        "cumulate": CumulateWindow(40, 20),
        "rows": RowsWindow(40, 20),
        "session": SessionWindow(20),
    }
    window = made[kind]
    assert type(window) is KINDS[kind]
    assert window.with_slide(20) == window
    assert window != TimeWindow(20, 20)
    assert window.example.startswith("[")
    said = [window.short, window.intervals_text(), window.tuple_text(), str(window)]
    assert all(said)
    assert window.is_sliced != bool(window.cells_text)
    assert sorted([window, TimeWindow(10, 10)])[0] == TimeWindow(10, 10)


@pytest.mark.parametrize(
    ("lengths", "words"),
    [
        ((0, 5), "length"),
        ((20, 0), "slide"),
        ((MAX_TICKS + 1, 1), "too long"),
        ((20, 7), "does not divide"),
        ((5, 20), "does not divide"),
    ],
)
def test_periods_that_do_not_consist_of_slides_are_refused(lengths: tuple[int, int], words: str) -> None:
    with pytest.raises(WindloomError, match=words) as caught:
        CumulateWindow(*lengths)
    assert caught.value.hint


def test_cumulating_windows_are_equal_if_their_offsets_differ_by_periods() -> None:
    assert CumulateWindow(20, 5, 23) == CumulateWindow(20, 5, -17) != CumulateWindow(20, 5, 8)
    assert CumulateWindow(20, 5).overlap == 2.5
    assert CumulateWindow(20, 20).is_tumbling


def test_kinds_that_share_cells_have_one_identity() -> None:
    assert TimeWindow(40, 20).set_identity == LandmarkWindow(7).set_identity == CumulateWindow(9, 3).set_identity == ()
    assert RowsWindow(4, 2).set_identity == RowsWindow(9, 1).set_identity != ()
    assert SessionWindow(4).set_identity != SessionWindow(5).set_identity


def test_windows_read_as_they_are_written() -> None:
    second = 1_000_000
    assert str(TimeWindow(3600 * second, 60 * second)) == "[RANGE 1 hour SLIDE 1 minute]"
    assert str(TimeWindow(60 * second, 60 * second, 5 * second)) == "[TUMBLE 1 minute OFFSET 5 seconds]"
    assert str(CumulateWindow(86400 * second, 60 * second, 3600 * second)) == (
        "[CUMULATE 1 day SLIDE 1 minute OFFSET 1 hour]"
    )
    assert str(SessionWindow(300 * second)) == "[SESSION GAP 5 minutes]"
    assert TimeWindow(5, 20).overlap == 0.25
