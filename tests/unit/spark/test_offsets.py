"""What a micro-batch is about to bring, from Spark's offsets and the footers of files, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windloom.model import DataType, Stream
from windloom.spark.sources.offsets import MOST_FILES, SparkOffsets, of_files
from windloom.statistics.observations import ExpectedInput

PACKETS = Stream("packets", {"ts": DataType.parse("timestamp"), "n": DataType.parse("bigint")}, "ts")
COUNTED = Stream("counted", {"at": DataType.parse("bigint")}, "at", time_unit="ms")


class Checkpoint:
    """A checkpoint as Spark leaves it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "offsets").mkdir(parents=True)

    def offsets(self, batch: int, *sources: Any) -> None:
        lines = [
            "v1",
            json.dumps({"batchWatermarkMs": 0}),
            *("-" if each is None else json.dumps(each) for each in sources),
        ]
        (self.root / "offsets" / str(batch)).write_text("\n".join(lines))

    def listed(self, source: int, name: str, *entries: tuple[int, str]) -> None:
        folder = self.root / "sources" / str(source)
        folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"path": path, "timestamp": 1, "batchId": entry}) for entry, path in entries]
        (folder / name).write_text("\n".join(["v1", *lines]))


def packets(path: Path, ticks: list[int], zone: str | None = "UTC", unit: str = "us", **options: Any) -> str:
    times = pa.array(ticks, pa.timestamp("us", zone)).cast(pa.timestamp(unit, zone))
    pq.write_table(pa.table({"ts": times, "n": list(range(len(ticks)))}), path, **options)
    return f"file://{path}"


def test_footers_tell_how_many_tuples_come_and_between_which_times(tmp_path: Path) -> None:
    spark, offsets = Checkpoint(tmp_path / "spark"), SparkOffsets.at(f"file://{tmp_path}/spark", [PACKETS])
    assert offsets is not None
    one, two = (
        packets(tmp_path / "a b.parquet", [5_000, 9_000]),
        packets(tmp_path / "c.parquet", [7_000, 12_000, 11_000]),
    )
    spark.offsets(0, {"logOffset": 0})
    spark.listed(0, "0", (0, one.replace(" ", "%20")))
    spark.offsets(1, {"logOffset": 2})
    spark.listed(0, "1", (1, one.replace(" ", "%20")))
    spark.listed(0, "2.compact", (0, one), (1, one), (2, two))
    spark.offsets(2, {"logOffset": 2})
    assert offsets.coming(0) == {"packets": ExpectedInput(2, 5_000, 9_000)}
    assert offsets.coming(1) == {"packets": ExpectedInput(5, 5_000, 12_000)}
    assert offsets.coming(2) == {"packets": ExpectedInput(0)}
    assert offsets.coming(3) == {}, "Spark has not written it yet"


def test_every_stream_has_a_source_of_its_own(tmp_path: Path) -> None:
    spark, offsets = Checkpoint(tmp_path), SparkOffsets.at(str(tmp_path), [PACKETS, COUNTED])
    assert offsets is not None
    spark.listed(0, "0", (0, packets(tmp_path / "a.parquet", [1_000, 2_000])))
    pq.write_table(pa.table({"at": [7, 9]}), tmp_path / "b.parquet")
    spark.listed(1, "0", (0, str(tmp_path / "b.parquet")))
    spark.offsets(0, {"logOffset": 0}, None)
    spark.offsets(1, {"logOffset": 0}, {"logOffset": 0})
    spark.offsets(2, {"logOffset": 0})
    assert offsets.coming(0) == {"packets": ExpectedInput(2, 1_000, 2_000), "counted": ExpectedInput(0)}
    assert offsets.coming(1) == {"packets": ExpectedInput(0), "counted": ExpectedInput(2, 7_000, 9_000)}
    assert offsets.coming(2) == {}, "two streams that read one source cannot be told apart"


def test_offsets_of_kafka_tell_how_many_records_come(tmp_path: Path) -> None:
    spark, offsets = Checkpoint(tmp_path), SparkOffsets.at(str(tmp_path), [PACKETS])
    assert offsets is not None
    spark.offsets(0, {"bids": {"0": 5, "1": 7}})
    spark.offsets(1, {"bids": {"0": 9, "1": 8}})
    assert offsets.coming(0) == {}, "where it began is not known"
    assert offsets.coming(1) == {"packets": ExpectedInput(5)}


def test_what_is_not_as_expected_is_not_known(tmp_path: Path) -> None:
    spark, offsets = Checkpoint(tmp_path / "spark"), SparkOffsets.at(str(tmp_path / "spark"), [PACKETS])
    assert offsets is not None
    spark.offsets(0, {"logOffset": 0})
    assert offsets.coming(0) == {}, "no list of files"
    (tmp_path / "a.csv").write_text("ts,n\n")
    for path in (str(tmp_path / "a.csv"), str(tmp_path / "none.parquet"), "hdfs://there/a.parquet"):
        spark.listed(0, "0", (0, path))
        assert offsets.coming(0) == {}
    spark.listed(0, "0", *[(0, packets(tmp_path / "a.parquet", [1]))] * (MOST_FILES + 1))
    assert offsets.coming(0) == {}, "too many to look at"
    spark.offsets(0, 12)
    spark.offsets(1, 13)
    assert offsets.coming(1) == {}, "a source that counts otherwise"
    assert SparkOffsets.at("hdfs://there/spark", [PACKETS]) is None


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, ExpectedInput(2, 1_000, 3_000)),
        ({"unit": "ms"}, ExpectedInput(2, 1_000, 3_000)),
        ({"write_statistics": False}, ExpectedInput(2)),
        ({"zone": None}, ExpectedInput(2)),
        ({"use_deprecated_int96_timestamps": True}, ExpectedInput(2)),
    ],
)
def test_times_are_known_where_footers_have_them_as_instants(
    tmp_path: Path, options: dict[str, Any], found: ExpectedInput
) -> None:
    packets(tmp_path / "a.parquet", [1_000, 3_000], **options)
    path = str(tmp_path / "a.parquet")
    assert of_files([path], PACKETS) == found
