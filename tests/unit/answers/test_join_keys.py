"""What a round counts of the keys of joins."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windloom.answers.joins.key_counts import _hashes
from windloom.state.cells import Cells


@pytest.mark.parametrize(("safe", "left"), [((False, False), 1), ((True, False), 2), ((True, True), 4)])
def test_groups_with_a_null_in_any_key_match_nothing_unless_nulls_are_equal(safe: tuple[bool, bool], left: int) -> None:
    keys = [pa.array([1, None, 3, None], pa.int64()), pa.array(["a", "b", None, None])]
    cells = Cells(keys, np.arange(5, dtype=np.int64), np.zeros(4, np.int64), ())
    assert len(_hashes(cells, (0, 1), safe)) == left
