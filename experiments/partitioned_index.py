"""The indices of source E, chapter 4, on disk: doubly partitioned ones, and those that are divided by insertion alone.

Windloom has none of them: the files of its sink `current` are never changed. They are here to repeat the thesis'
experiments. Records live for up to `longest` periods; in every period a batch of new ones comes, and those go whose end
has come. A sub-index is a file with a directory by search key in memory (figure 4.3), and is rebuilt whenever it
changes (*Rebuild*, REINDEX), or changed in place, in buckets of one size (*NoRebuild*, DEL).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

#: 1,000 bytes, as in the thesis.
RECORD = np.dtype([("key", "<i4"), ("end", "<i8"), ("data", "S988")])
Records = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Layout:
    """Into which sub-index a record goes: by when it was inserted (G ways), and by when it ends (E ways).

    Round-robin, periods follow each other through the parts; else a part is one stretch of periods.
    """

    insertions: int
    ends: int
    round_robin: bool
    longest: int

    @property
    def parts(self) -> int:
        return self.insertions * self.ends

    def of(self, inserted: int, end: int) -> int:
        return self._place(inserted, self.insertions) * self.ends + self._place(end, self.ends)

    def inserting(self, period: int) -> set[int]:
        row = self._place(period, self.insertions) * self.ends
        return set(range(row, row + self.ends))

    def ending(self, period: int) -> set[int]:
        return set(range(self._place(period, self.ends), self.parts, self.ends))

    def _place(self, period: int, ways: int) -> int:
        return (period if self.round_robin else period * ways // self.longest) % ways


@dataclass(slots=True)
class Traffic:
    """What was read and written, and how many sub-indices were opened for updates."""

    read: int = 0
    written: int = 0
    opened: int = 0


class SubIndex:
    """One file; what it costs is counted in `traffic`."""

    def __init__(self, path: Path, traffic: Traffic) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.traffic = traffic

    def update(self, new: Records, now: int) -> None:
        """Adds records and drops those that end now or have ended; all is on disk when this returns."""
        raise NotImplementedError

    def probe(self, key: int) -> Iterator[Records]:
        raise NotImplementedError

    def scan(self) -> Iterator[Records]:
        raise NotImplementedError

    def close(self) -> None:
        os.close(self.file)

    def _read(self, place: int, count: int) -> Records:
        data = os.pread(self.file, count * RECORD.itemsize, place * RECORD.itemsize)
        self.traffic.read += len(data)
        return np.frombuffer(data, RECORD)

    def _write(self, place: int, records: Records) -> None:
        data = memoryview(np.ascontiguousarray(records).view(np.uint8).reshape(-1))  # type: ignore[arg-type]
        begin = place * RECORD.itemsize
        while len(data):
            written = os.pwrite(self.file, data, begin)
            self.traffic.written += written
            data, begin = data[written:], begin + written


class Rebuilt(SubIndex):
    """Records of a key are in one bucket, whose size is theirs; the file is written anew by every update."""

    def __init__(self, path: Path, traffic: Traffic) -> None:
        super().__init__(path, traffic)
        self._count = 0
        self._directory: dict[int, tuple[int, int]] = {}  # by key: place and count

    def update(self, new: Records, now: int) -> None:
        held = self._read(0, self._count)
        records = np.concatenate([held[held["end"] > now], new])
        if len(new) == 0 and len(records) == len(held):
            return
        records = records[np.lexsort((records["end"], records["key"]))]
        keys, places, counts = np.unique(records["key"], return_index=True, return_counts=True)
        self._directory = {
            int(key): (int(place), int(count)) for key, place, count in zip(keys, places, counts, strict=True)
        }
        self._count = len(records)
        os.ftruncate(self.file, self._count * RECORD.itemsize)
        self._write(0, records)
        os.fsync(self.file)

    def probe(self, key: int) -> Iterator[Records]:
        if key in self._directory:
            yield self._read(*self._directory[key])

    def scan(self) -> Iterator[Records]:
        yield self._read(0, self._count)


@dataclass(slots=True)
class _Bucket:
    slot: int
    ends: list[int]  # in order


class Updated(SubIndex):
    """Records of a key are in buckets of one size, each sorted by end, which are changed one by one."""

    def __init__(self, path: Path, traffic: Traffic, size: int) -> None:
        super().__init__(path, traffic)
        self._size, self._slots = size, 0
        self._free: list[int] = []
        self._directory: dict[int, list[_Bucket]] = {}

    def update(self, new: Records, now: int) -> None:
        changed = False
        for key, buckets in self._directory.items():
            for bucket in buckets:
                # The directory of the thesis tells how many records a bucket has, and not their ends: it is read.
                held = self._read(bucket.slot * self._size, len(bucket.ends))
                left = held[held["end"] > now]
                if len(left) < len(held):
                    changed = True
                    self._put(bucket, left)
            self._free += [bucket.slot for bucket in buckets if not bucket.ends]
            self._directory[key] = [bucket for bucket in buckets if bucket.ends]
        for key in np.unique(new["key"]):
            self._insert(int(key), new[new["key"] == key])
            changed = True
        if changed:
            os.fsync(self.file)

    def _insert(self, key: int, records: Records) -> None:
        buckets = self._directory.setdefault(key, [])
        for bucket in buckets:
            room = self._size - len(bucket.ends)
            if room and len(records):
                held = self._read(bucket.slot * self._size, len(bucket.ends))
                self._put(bucket, np.concatenate([held, records[:room]]))
                records = records[room:]
        while len(records):
            if not self._free:
                self._free.append(self._slots)
                self._slots += 1
            bucket = _Bucket(self._free.pop(), [])
            buckets.append(bucket)
            self._put(bucket, records[: self._size])
            records = records[self._size :]

    def _put(self, bucket: _Bucket, records: Records) -> None:
        records = records[np.argsort(records["end"], kind="stable")]
        bucket.ends = records["end"].tolist()
        if len(records):
            self._write(bucket.slot * self._size, records)

    def probe(self, key: int) -> Iterator[Records]:
        for bucket in self._directory.get(key, []):
            yield self._read(bucket.slot * self._size, len(bucket.ends))

    def scan(self) -> Iterator[Records]:
        """The file as it lies, with the places in it that are not used."""
        held = self._read(0, self._slots * self._size)
        for buckets in self._directory.values():
            for bucket in buckets:
                begin = bucket.slot * self._size
                yield held[begin : begin + len(bucket.ends)]


@dataclass
class PartitionedIndex:
    """All sub-indices; `bucket` is the size of buckets, or None if sub-indices are rebuilt."""

    folder: Path
    layout: Layout
    bucket: int | None
    traffic: Traffic = field(default_factory=Traffic)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = [self.folder / f"{part}.index" for part in range(self.layout.parts)]
        self._parts: list[SubIndex] = [
            Rebuilt(path, self.traffic) if self.bucket is None else Updated(path, self.traffic, self.bucket)
            for path in paths
        ]

    def build(self, inserted: NDArray[np.int64], records: Records, now: int) -> None:
        """Fills it, with records that were inserted in several periods."""
        places = np.array(
            [self.layout.of(*pair) for pair in zip(inserted.tolist(), records["end"].tolist(), strict=True)]
        )
        for part, index in enumerate(self._parts):
            index.update(records[places == part], now)

    def update(self, period: int, records: Records) -> None:
        """The batch of a period; what ends in it goes."""
        places = np.array([self.layout.of(period, end) for end in records["end"].tolist()], np.int64)
        for part in sorted(self.layout.inserting(period) | self.layout.ending(period)):
            self.traffic.opened += 1
            self._parts[part].update(records[places == part], period)

    def probe(self, key: int) -> int:
        """How many records have a key; they are read."""
        return sum(len(found) for index in self._parts for found in index.probe(key))

    def scan(self) -> Iterator[Records]:
        for index in self._parts:
            yield from index.scan()

    @property
    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.glob("*.index"))

    def close(self) -> None:
        for index in self._parts:
            index.close()


def drawn(rng: np.random.Generator, period: int, count: int, longest: int, keys: int) -> Records:
    """New records of a period: keys and lifetimes are uniform, and what they hold cannot be compressed."""
    records = np.zeros(count, RECORD)
    records["key"] = rng.integers(0, keys, count)
    records["end"] = period + rng.integers(1, longest + 1, count)
    data = rng.integers(1, 256, (count, RECORD["data"].itemsize), np.uint8)
    records["data"] = data.view(RECORD["data"]).reshape(count)
    return records
