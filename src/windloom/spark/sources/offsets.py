"""The size and times of a micro-batch before any of it is read: from Spark's offsets, and the footers of files.

Before Spark passes a micro-batch on, it writes down which offsets of every source the micro-batch has. For a source of
files, an offset stands for a list of files, and the footer of a Parquet file shows how many rows it has and between
which times they lie. For Kafka, two offsets show how many records lie between them. All of this is in small files,
which are read without Spark. It only helps to choose a plan: whatever is not as expected counts as not known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from windloom.model.stream import Stream
from windloom.model.time import INTEGER_UNITS
from windloom.statistics.observations import ExpectedInput

#: The footers of files are not read before a round if there are more files than this.
MOST_FILES = 64
#: How many bytes are read from the end of a list of files that was merged with all lists before it.
TAIL = 1 << 16
#: Ticks per unit of time in a file.
_UNITS = {"ms": 1_000.0, "us": 1.0, "ns": 0.001}


@dataclass(frozen=True, slots=True)
class SparkOffsets:
    """The offsets of a streaming query that reads one source for each of `streams`, in their order."""

    checkpoint: Path  # Spark's own checkpoint
    streams: tuple[Stream, ...]

    @classmethod
    def at(cls, place: str, streams: Sequence[Stream]) -> SparkOffsets | None:
        """Return the offsets of a query's checkpoint, or None if that is not on this machine."""
        parts = urlsplit(place)
        return cls(Path(parts.path), tuple(streams)) if parts.scheme in ("", "file") else None

    def coming(self, batch: int) -> dict[str, ExpectedInput]:
        """Return the tuples that a micro-batch will have, by stream; a stream is left out if this is not known."""
        try:
            new, old = self._offsets(batch), self._offsets(batch - 1) if batch else [None] * len(self.streams)
            if not len(new) == len(old) == len(self.streams):  # a stream has several sources, or two have the same one
                return {}
            coming_by_stream = {}
            for index, stream in enumerate(self.streams):
                coming = self._of_source(index, stream, old[index], new[index])
                if coming is not None:
                    coming_by_stream[stream.name] = coming
            return coming_by_stream
        except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
            return {}

    def _offsets(self, batch: int) -> list[Any]:
        """Return the offsets by source, after two lines of headers; None for a source without data so far."""
        lines = (self.checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()[2:]
        return [None if line == "-" else json.loads(line) for line in lines]

    def _of_source(self, index: int, stream: Stream, old: Any, new: Any) -> ExpectedInput | None:
        if new is None or new == old:
            return ExpectedInput(0)
        if isinstance(new, Mapping) and set(new) == {"logOffset"}:
            first = -1 if old is None else int(old["logOffset"])
            files = [
                path for entry in range(first + 1, int(new["logOffset"]) + 1) for path in self._files(index, entry)
            ]
            return of_files(files, stream) if 0 < len(files) <= MOST_FILES else None
        return None if old is None else ExpectedInput(_records(old, new))

    def _files(self, index: int, entry: int) -> list[str]:
        """Return the local files of one entry of a source's log; raise OSError if it is gone."""
        folder = self.checkpoint / "sources" / str(index)
        plain = folder / str(entry)
        if plain.exists():
            lines = plain.read_bytes().splitlines()[1:]
        else:
            with (folder / f"{entry}.compact").open("rb") as merged:
                size = merged.seek(0, 2)
                merged.seek(max(0, size - TAIL))
                lines = merged.read().splitlines()[1:]  # the first line may be incomplete, or the version
        paths = []
        for about in map(json.loads, lines):
            if about["batchId"] == entry:
                parts = urlsplit(about["path"])
                if parts.scheme not in ("", "file") or parts.netloc:
                    raise ValueError(about["path"])
                paths.append(unquote(parts.path))
        return paths


def of_files(paths: Sequence[str], stream: Stream) -> ExpectedInput | None:
    """Return what a stream is about to bring, from the footers of Parquet files."""
    rows, ticks = 0, list[float]()
    is_timed = True
    for path in paths:
        footer = pq.read_metadata(path)
        rows += footer.num_rows
        index = footer.schema.names.index(stream.time) if stream.time in footer.schema.names else -1
        scale = _scale(footer, index, stream) if index >= 0 else None
        for group in range(footer.num_row_groups if footer.num_rows else 0):
            about = None if scale is None else footer.row_group(group).column(index).statistics
            if about is None or not about.has_min_max or scale is None:
                is_timed = False
                break
            ticks += [about.min_raw * scale, about.max_raw * scale]
    first, last = (int(min(ticks)), int(max(ticks))) if is_timed and ticks else (None, None)
    return ExpectedInput(rows, first, last)


def _scale(footer: pq.FileMetaData, index: int, stream: Stream) -> float | None:
    """Return ticks per unit of the time column; None if its meaning depends on Spark's zone or an old format."""
    kind = footer.schema.to_arrow_schema().field(stream.time).type
    if footer.schema.column(index).physical_type not in ("INT32", "INT64"):
        return None
    if pa.types.is_timestamp(kind):
        return _UNITS.get(kind.unit) if kind.tz is not None else None
    return float(INTEGER_UNITS[stream.time_unit or "us"]) if pa.types.is_integer(kind) else None


def _records(old: Mapping[str, Mapping[str, int]], new: Mapping[str, Mapping[str, int]]) -> int:
    """Return the number of records between two offsets of Kafka, which are by topic and partition.

    >>> _records({"bids": {"0": 5, "1": 7}}, {"bids": {"0": 9, "1": 7, "2": 3}})
    7
    """
    return sum(
        int(until) - int(old.get(topic, {}).get(partition, 0))
        for topic, partitions in new.items()
        for partition, until in partitions.items()
    )
