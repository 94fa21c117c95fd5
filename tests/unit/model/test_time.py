from __future__ import annotations

from datetime import timedelta

import pytest

from windloom.errors import WindloomError
from windloom.model.time import format_duration, parse_duration, unit_ticks

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("written", "ticks"),
    [
        ("10 seconds", 10 * SECOND),
        ("10s", 10 * SECOND),
        ("1 hour 30 minutes", 5400 * SECOND),
        ("1.5 hours", 5400 * SECOND),
        ("INTERVAL 90 min", 5400 * SECOND),
        ("interval 2 DAYS", 2 * 86_400 * SECOND),
        ("1 week", 604_800 * SECOND),
        ("500 ms", SECOND // 2),
        ("7 µs", 7),
        ("0.000001 seconds", 1),
        ("-5 seconds", -5 * SECOND),
        ("1 hour -1 minute", 3540 * SECOND),
        ("0 seconds", 0),
        (timedelta(days=-1, microseconds=1), 1 - 86_400 * SECOND),
        (timedelta(weeks=5_000_000), 5_000_000 * 604_800 * SECOND),
    ],
)
def test_durations_are_whole_ticks(written: str | timedelta, ticks: int) -> None:
    assert parse_duration(written) == ticks


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("", "cannot read the duration ''"),
        ("soon", "cannot read the duration 'soon'"),
        ("10", "cannot read the duration '10'"),
        ("10 seconds and more", "cannot read the duration"),
        ("1 month", "not a duration of fixed length"),
        ("2 years", "not a duration of fixed length"),
        ("1 quarter", "not a duration of fixed length"),
        ("3 fortnights", "unknown time unit 'fortnights'"),
        ("0.5 us", "finer than one microsecond"),
        (10, "must be text or a timedelta, not int"),
        (None, "must be text or a timedelta, not NoneType"),
    ],
)
def test_what_is_no_duration_is_refused(written: str, words: str) -> None:
    with pytest.raises(WindloomError) as caught:
        parse_duration(written)
    assert words in caught.value.message
    assert caught.value.detail
    assert caught.value.hint


@pytest.mark.parametrize("word", ["second", "Seconds", "SEC", "s", "secs"])
def test_units_have_many_spellings(word: str) -> None:
    assert unit_ticks(word) == SECOND


@pytest.mark.parametrize("ticks", [1, 999, 1_000, 60 * SECOND, 61 * SECOND, 86_400 * SECOND, -7 * SECOND, 0, 2**58])
def test_a_duration_is_read_back_as_it_is_shown(ticks: int) -> None:
    assert parse_duration(format_duration(ticks)) == ticks
