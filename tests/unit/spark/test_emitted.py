"""What a batch run has reported of windows, for verification."""

from __future__ import annotations

import pyarrow as pa
import pytest

from support.emission import asked, bag
from support.emission_oracle import changes
from windloom.spark.verify.verify import rows_of_windows


@pytest.mark.parametrize("window", ["RANGE 8 us SLIDE 4 us", "LANDMARK SLIDE 4 us"])
def test_changes_leave_the_rows_of_every_window(window: str) -> None:
    query = asked(f"SELECT k, count(*) AS n FROM s [{window}] GROUP BY k", "EMIT CHANGES", "q")
    shown = {"x": [1, 1, 2, None, 2, 2], None: [None, 5, 5, 5, None, None], "y": [None, None, None, None, 1, 1]}
    rows = [
        {"window_start": 4 * place if window.startswith("R") else 0, "window_end": 4 * place + 8, "k": k, "n": n}
        for k, values in shown.items()
        for place, n in enumerate(values)
        if n is not None
    ]
    expected = pa.Table.from_pylist(rows)
    kinds = [*expected.schema, pa.field("change", pa.string())]
    for last in (28, 32):  # the stream may go on for a window in which nothing is left
        reported = pa.Table.from_pylist(changes(query, rows, last), schema=pa.schema(kinds))
        assert bag(rows_of_windows(query, reported, expected).to_pylist()) == bag(rows)
    nothing = reported.slice(0, 0)
    assert rows_of_windows(query, nothing, expected.slice(0, 0)).num_rows == 0
