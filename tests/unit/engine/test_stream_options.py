"""How a loom is started: what is refused, and how a trigger is told to Spark."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from windloom.engine.options import StreamOptions, parse_instant
from windloom.errors import WindloomError
from windloom.optimizer.adapt.charts import ChartOptions
from windloom.optimizer.adapt.replan import AdaptOptions

DEFAULTS: dict[str, Any] = {
    "trigger": None,
    "finish": False,
    "idle_after": None,
    "keep": None,
    "untimed": "skip",
    "snapshot_rounds": 10,
}


@pytest.mark.parametrize(
    ("given", "told"),
    [("5 s", 5000), ("1 minute 30 seconds", 90_000), (timedelta(hours=1), 3_600_000), ("1 us", 1), ("0 seconds", 0)],
)
def test_a_trigger_is_any_duration(given: Any, told: int) -> None:
    options = StreamOptions.of(**{**DEFAULTS, "trigger": {"processingTime": given}})
    assert options.trigger == {"processingTime": f"{told} milliseconds"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"trigger": {"processingTime": "soon"}}, "processingTime: cannot read the duration 'soon'"),
        ({"trigger": {"processingTime": "-1 s"}}, "processingTime cannot be negative"),
        ({"trigger": {"once": True}}, "unknown trigger"),
        ({"trigger": "now"}, "unknown trigger"),
        ({"finish": True}, "finish=True needs a stream that ends"),
        ({"untimed": "drop"}, "unknown choice untimed='drop'"),
        ({"keep": "1 month"}, "keep: 'month' is not a duration"),
        ({"idle_after": "-1 s"}, "idle_after cannot be negative"),
        ({"snapshot_rounds": 0}, "a snapshot cannot be taken every 0 rounds"),
        ({"adapt": 7}, "adapt cannot be 7"),
        ({"adapt": {"epsilon": -1}}, "the tolerance of an incremental plan cannot be -1"),
        ({"adapt": {"epsilon": "much"}}, "the tolerance of an incremental plan cannot be 'much'"),
        ({"adapt": {"part": 7}}, "adapt has no option 'part'"),
        ({"adapt": {"parts": 0}}, "a chart cannot have 0 parts"),
        ({"adapt": {"parts": 30}}, "a chart of 30 parts and 3 dimensions is past its bound"),
        ({"objective": "fast"}, "unknown objective 'fast'"),
        ({"objective": {"latency": 0}}, "all weights of the objective are zero"),
    ],
)
def test_mistakes_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(WindloomError) as refused:
        StreamOptions.of(**{**DEFAULTS, **given})
    assert words in refused.value.message
    assert refused.value.hint


def test_an_instant_without_a_zone_is_in_utc() -> None:
    assert parse_instant("handover", "1970-01-01 00:00:01") == 1_000_000
    assert parse_instant("handover", "1970-01-01T01:00:00+01:00") == 0
    with pytest.raises(WindloomError, match="handover is not an instant"):
        parse_instant("handover", "noon")


def test_plans_follow_the_data_unless_that_is_refused() -> None:
    assert StreamOptions.of(**DEFAULTS).adapt == AdaptOptions()
    assert StreamOptions.of(**DEFAULTS, adapt=False).adapt is None
    assert StreamOptions.of(**DEFAULTS, adapt={"parts": 20, "dimensions": 2}).adapt == AdaptOptions(ChartOptions(20, 2))
    assert StreamOptions.of(**DEFAULTS, adapt="charts").adapt == AdaptOptions(ChartOptions())
    assert StreamOptions.of(**DEFAULTS, adapt={}).adapt == AdaptOptions()
    with_tolerance = StreamOptions.of(**DEFAULTS, adapt={"epsilon": 0.05})
    assert (with_tolerance.adapt, with_tolerance.epsilon) == (None, 0.05)
    weighed = StreamOptions.of(**DEFAULTS, objective={"latency": 2, "memory": 6}).objective
    assert (weighed.latency, weighed.memory) == (0.25, 0.75)
