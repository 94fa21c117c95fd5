"""The segments of a state as files of a checkpoint: written once, mapped when a stream goes on, removed when not named.

A snapshot names the segments that its state has. Several snapshots name the same ones, so each is written once, and a
snapshot costs what rounds have changed since the one before. Cells of a mapped file are read, and their checksum is
verified, when a round first needs them.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from windloom.checkpoint.frames import RESTORE_HINT, frame_pieces, read_cells, read_file, write_cells
from windloom.checkpoint.storage import Storage, fault
from windloom.errors import WindloomError
from windloom.model.arrays import Ints
from windloom.state.cells import Cells
from windloom.state.held import HeldSegments, HeldSets, every
from windloom.state.segments import Segment

FOLDER = "segments"


class MappedCells:
    """The cells of a segment in a file of a checkpoint."""

    def __init__(self, name: str, data: bytes | memoryview) -> None:
        self._name, self._data = name, data
        self._reading = threading.Lock()  # rounds and questions may touch a segment first at the same time
        self._cells: Cells | None = None

    def cells(self) -> Cells:
        with self._reading:
            if self._cells is None:
                frame = read_file("segment", self._name, self._data)
                (self._cells,) = read_cells(frame.body["sets"], frame.blobs["cells"]).values()
                self._data = b""  # the cells have been copied, because kernels are compiled for writable arrays
            return self._cells

    @cached_property
    def slices(self) -> Ints:
        return np.unique(self.cells().starts)


class SegmentFiles:
    """The files of segments in a checkpoint; only one thread at a time writes and removes them."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._sizes = storage.sizes(FOLDER)  # by name of the file

    def missing(self, held: Mapping[int, Cells]) -> list[Segment]:
        """Return the segments of a state's cells that no file has yet."""
        return [segment for segment in every(held) if _file_of(segment.name) not in self._sizes]

    def write(self, segment: Segment) -> None:
        name = _file_of(segment.name)
        assert segment.held is not None, "segments in process have their cells"
        described, cells = write_cells({0: segment.held.cells()})
        pieces = frame_pieces("segment", {"sets": described}, {"cells": cells})
        fault("before segment")
        write_pieces(self._storage, f"{FOLDER}/{name}", pieces)
        fault("after segment")
        self._sizes[name] = sum(map(len, pieces))

    def described(self, held: HeldSets) -> dict[str, Any]:
        """Return which segments there are, for the body of a snapshot; all of them have been written."""
        return {
            str(number): {
                "ticks": own.ticks,
                "groups": own.groups,
                "segments": [[*each.figures, self._sizes[_file_of(each.name)]] for each in own.segments],
            }
            for number, own in sorted(held.segments.items())
        }

    def opened(self, described: Mapping[str, Any]) -> dict[int, HeldSegments]:
        """Return the segments that a snapshot describes, by number of the set; none of them is read."""
        return {
            int(number): HeldSegments(
                about["ticks"],
                tuple(
                    Segment.of_figures(figures, self._open(figures[0], size)) for *figures, size in about["segments"]
                ),
                about["groups"],
            )
            for number, about in described.items()
        }

    def _open(self, segment: str, size: int) -> MappedCells:
        name = f"{FOLDER}/{_file_of(segment)}"
        data = self._storage.mapped(name)
        if data is None:
            raise WindloomError(f"the checkpoint's file '{name}' is missing", "a snapshot names it", RESTORE_HINT)
        if len(data) != size:
            # Not a `DamagedError`: the snapshot is whole, and may be used again when the file is.
            fact = f"it has {len(data):,} bytes, and {size:,} were written"
            raise WindloomError(f"the checkpoint's file '{name}' is damaged", fact, RESTORE_HINT)
        return MappedCells(name, data)

    def keep_only(self, names: Collection[str]) -> None:
        """Remove the files of all other segments. What is mapped can still be read."""
        kept = {_file_of(name) for name in names}
        for file in [file for file in self._sizes if file not in kept]:
            self._storage.delete(f"{FOLDER}/{file}")
            del self._sizes[file]


def named_segments(described: Mapping[str, Any]) -> set[str]:
    """Return the names of the segments that a snapshot describes."""
    return {figures[0] for about in described.values() for figures in about["segments"]}


def write_pieces(storage: Storage, name: str, pieces: Collection[Any]) -> None:
    """Write a file from pieces, without copying them into one."""
    file = storage.create(name)
    try:
        for piece in pieces:
            file.stream.write(piece)
    except OSError as error:
        file.discard()
        raise file.failed(error) from error
    file.finish()


def _file_of(segment: str) -> str:
    return f"{segment}.arrow"
