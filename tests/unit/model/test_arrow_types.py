"""Columns of tables as arrays."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windloom.model.types import DataType, arrow_type, as_array

NAMES = ["bigint", "double", "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz", "decimal(38,2)"]


@pytest.mark.parametrize("name", NAMES)
def test_a_column_without_chunks_is_an_empty_array_of_its_type(name: str) -> None:
    plain = arrow_type(DataType.parse(name))
    for kind in (plain, pa.dictionary(pa.int32(), plain)):
        found = as_array(pa.chunked_array([], kind))
        assert (len(found), found.type) == (0, kind)
