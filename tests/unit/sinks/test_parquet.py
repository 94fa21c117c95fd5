"""Where answers may go, and what their tables are called."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from windloom.engine.results import with_utc
from windloom.errors import WindloomError
from windloom.sinks.parquet import check_empty
from windloom.sinks.tables import table_name


def test_a_new_or_empty_directory_is_accepted(tmp_path: Path) -> None:
    check_empty(tmp_path)
    check_empty(tmp_path / "new" / "deep")


def test_a_directory_that_holds_something_is_refused_with_an_example(tmp_path: Path) -> None:
    for name in ("b", ".hidden"):
        (tmp_path / name).touch()
    with pytest.raises(WindloomError) as caught:
        check_empty(tmp_path)
    assert caught.value.message == f"the output directory '{tmp_path}' is not empty"
    assert caught.value.detail == "it holds 2 entries, such as '.hidden'"


@pytest.mark.parametrize("place", ["hdfs://server/x", "s3a://bucket/x", "file:///tmp/x"])
def test_other_machines_are_refused(place: str) -> None:
    with pytest.raises(WindloomError, match="cannot write to"):
        check_empty(Path(place))


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WindloomError) as caught:
        check_empty(tmp_path / "file")
    assert caught.value.detail == "it is a file"


def test_tables_are_named_after_their_columns_and_told_apart_by_type() -> None:
    window = {"window_start": "timestamp", "window_end": "timestamp"}
    names = [
        table_name({**window, "symbol": "string", "n": "bigint"}),
        table_name({**window, "symbol": "string", "n": "double"}),
        table_name({**window, "Größe/../x": "string", "sum(a + b)": "double"}),
        table_name({**window, "日本": "string"}),
        table_name(window),
        table_name({**window, **{f"column{i}": "int" for i in range(99)}}),
    ]
    assert [name.rsplit("-", 1)[0] for name in names[:5]] == [
        "symbol_n",
        "symbol_n",
        "gr_e_x_sum_a_b",
        "windows",
        "windows",
    ]
    assert len(set(names)) == len(names)
    assert all(len(name) < 80 for name in names)


def test_instants_are_in_utc_whatever_the_zone_and_nulls_are_allowed() -> None:
    schema = pa.schema([pa.field("a", pa.timestamp("us", "Asia/Kathmandu"), nullable=False), ("b", pa.timestamp("us"))])
    table = pa.table([pa.array([0], pa.timestamp("us", "Asia/Kathmandu")), pa.array([0], pa.timestamp("us"))], schema)
    changed = with_utc(table)
    assert changed.schema.equals(pa.schema([("a", pa.timestamp("us", "UTC")), ("b", pa.timestamp("us"))]))
    assert changed["a"].cast(pa.int64()).to_pylist() == [0]
