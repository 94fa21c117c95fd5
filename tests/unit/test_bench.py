"""`python -m bench.kernels`: what it refuses, and what its table says of figures that are given."""

from __future__ import annotations

import pytest
from bench.kernels.__main__ import bars, bench
from click.testing import CliRunner

from windloom.errors import WindloomError


def test_a_window_too_short_to_count_is_refused() -> None:
    outcome = CliRunner().invoke(bench, ["operations", "--window", "3"])
    assert isinstance(outcome.exception, WindloomError)
    assert "--window 8" in outcome.exception.hint


@pytest.mark.parametrize(("share", "holds"), [(0.3, True), (0.01, False)])
def test_a_bar_holds_or_is_missed_by_the_share_of_the_reading_loop(share: float, holds: bool) -> None:
    names = [(t, k) for t in ("slick_deque", "two_stacks", "block_decomposition", "daba") for k in ("sum", "max")]
    speed = {"ns": 2.0, "ratio_reading": share, "ratio_float": 0.9, "ratio_vector": 0.9, "ratio_writing": 0.9}
    found = {
        "single_query": [{"technique": t, "kind": k, "window": 4096, "input": "random", **speed} for t, k in names],
        "many_ranges": [{"technique": "daba", "kind": k, "ranges": "100 ranges", **speed} for k in ("sum", "max")],
        "latency": [{"technique": t, "kind": k, "max_ns": 10.0} for t, k in names],
        "step": {"rows_per_second": 2e7, "ratio_writing": 0.5},
    }
    assert {row["holds"] for row in bars(found) if "share of the loop" in row["what"]} == {holds}
