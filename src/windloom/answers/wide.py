"""Answers of many queries side by side, over time: a row per key and instant, in one pass over the answers.

An instant is the end of a window of one of the queries. Each query contributes the last of its windows that ends at or
before it, so windows that move on in larger steps are repeated until they do.

Most answers lie in stretches: rows of one key whose windows follow each other. Rows are only looked at to find where
stretches begin, and to copy values; everything else is done once for each stretch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.kernels.compiling import new_array
from windloom.kernels.side_by_side import mark_instants, mark_pairs, mark_turns, spread_rows
from windloom.model.types import as_array
from windloom.model.windows.window import Window

Ints = NDArray[np.int64]
#: The most numbers that a table of numbers may have for each row; beyond that, numbers are sorted.
_MOST_PER_ROW, _FEW = 16, 1 << 20


@dataclass(frozen=True, slots=True)
class WidePart:
    """The answers of a query, the windows they are of, and the names of its columns in the wide table."""

    rows: pa.Table
    window: Window
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some answers of a query, from row `first` on; rows `begin[i] : begin[i + 1]` of them are a stretch."""

    part: int
    first: int
    rows: pa.RecordBatch
    begin: Ints
    ends: Ints  # of the first and of the last window of each stretch
    keys: list[pa.DictionaryArray]  # of each stretch, by column


def wide_over_time(parts: Sequence[WidePart], by: Sequence[str], name: str, until: int | None) -> pa.Table:
    """Return a row per key and instant, the instants of a key in order; the column `name` has the instants.

    No instant is after `until`, a tick. For a query without an answer there is NULL.
    """
    schema, slides = parts[0].rows.schema, [part.window.slide_ticks for part in parts]
    names = [name, *by, *(shown for part in parts for shown in part.columns.values())]
    tables = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = list(pool.map(partial(_pieces, by), range(len(parts)), parts))
        pieces = [piece for of_part in found for piece in of_part]
        instants, places = _instants(pieces, slides)
        codes, keys = _coded(pieces, [schema.field(column).type for column in by])
        count = max(1, len(keys[0])) if keys else 1
        after = len(instants) if until is None else int(np.searchsorted(instants, until, side="right"))
        # Where the next window of a query ends: until there, its last answer stands.
        next_places = {slide: np.searchsorted(instants, instants + slide).clip(max=after) for slide in set(slides)}
        # Where few of the pairs of a key and an instant are there, a part of the keys is looked at, one after another.
        rows = sum(part.rows.num_rows for part in parts)
        together = max(1, (_MOST_PER_ROW * rows + _FEW) // max(1, len(instants)))
        for first in range(0, count, together):
            last = min(first + together, count)
            is_present = np.zeros((last - first) * len(instants), np.bool_)
            pairs = []
            for piece, code, (place, last_place) in zip(pieces, codes, places, strict=True):
                is_here = (first <= code) & (code < last) & (place < after)
                stop = next_places[slides[piece.part]][last_place]
                pairs.append(np.where(is_here, (code - first) * len(instants) + np.stack([place, stop]), 0))
                mark_pairs(*pairs[-1], is_present)
            present, number_of = np.flatnonzero(is_present), np.cumsum(is_present) - 1
            standing = [_Standing(part, len(present), next_places[part.window.slide_ticks]) for part in parts]
            for piece, pair, (place, _) in zip(pieces, pairs, places, strict=True):
                standing[piece.part].pieces.append((piece, place, number_of[pair[0]], pair[1] - pair[0]))
            key_of, instant_of = np.divmod(present, max(1, len(instants)))
            arrays = [pa.array(instants[instant_of]).cast(schema.field("window_end").type)]
            arrays += [key.take(pa.array(first + key_of)) for key in keys]
            for made in pool.map(_Standing.columns, standing):
                arrays += made
            tables.append(pa.Table.from_arrays(arrays, names=names))
    return pa.concat_tables(tables)


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where the answers of a query stand in a table of so many rows.

    With each piece: at which instant and in which row each of its stretches begins to stand, and in how many rows.
    """

    part: WidePart
    rows: int
    next_place: Ints
    pieces: list[tuple[_Piece, Ints, Ints, Ints]] = field(default_factory=list)

    def columns(self) -> list[pa.Array]:
        is_there = None
        if sum(int(counts.sum()) for *_, counts in self.pieces) < self.rows:
            is_there = np.zeros(self.rows, np.bool_)
            for _, _, targets, counts in self.pieces:
                mark_pairs(targets, targets + counts, is_there)
        return [self._column(name, is_there) for name in self.part.columns]

    def _column(self, name: str, is_there: NDArray[np.bool_] | None) -> pa.Array:
        column = self.part.rows[name]
        if not (pa.types.is_primitive(column.type) and column.type.bit_width == 64):
            numbers = pa.array(np.arange(len(column)))  # in Arrow's memory, as all other values
            row_of = self._spread(lambda piece: _words(numbers.slice(piece.first, piece.rows.num_rows)))
            return as_array(column).take(pa.array(row_of, mask=None if is_there is None else ~is_there))
        if column.null_count:
            is_there = self._spread(lambda piece: _words(piece.rows[name].is_valid().cast(pa.int64()))) > 0
        validity = None if is_there is None else pa.py_buffer(np.packbits(is_there, bitorder="little"))
        values = self._spread(lambda piece: _words(piece.rows[name]))
        return pa.Array.from_buffers(column.type, self.rows, [validity, pa.py_buffer(values)])

    def _spread(self, values: Callable[[_Piece], Ints]) -> Ints:
        """Return a value for each row of the table, 0 where there is none."""
        spread = new_array(self.rows, np.int64)
        spread[:] = 0
        for piece, places, targets, counts in self.pieces:
            spread_rows(values(piece), piece.begin, places, targets, counts, self.next_place, spread)
        return spread


def _pieces(by: Sequence[str], number: int, part: WidePart) -> list[_Piece]:
    """Return the answers of a query in stretches."""
    slide, first, pieces = part.window.slide_ticks, 0, list[_Piece]()
    for rows in part.rows.to_batches():
        if rows.num_rows:
            ends, keys = _ends(rows), [_encoded(rows[column]) for column in by]
            is_turn = np.zeros(len(ends), np.bool_)
            mark_turns(ends, slide, is_turn)
            for key in keys:
                mark_turns(_indices(key), 0, is_turn)
            begin = np.concatenate([[0], np.flatnonzero(is_turn), [len(ends)]])
            of_stretches = [key.take(pa.array(begin[:-1])) for key in keys]
            pieces.append(_Piece(number, first, rows, begin, ends[np.stack([begin[:-1], begin[1:] - 1])], of_stretches))
        first += rows.num_rows
    return pieces


def _instants(pieces: Sequence[_Piece], slides: Sequence[int]) -> tuple[Ints, list[Ints]]:
    """Return all ends of windows in order, and the places among them of the ends of each stretch."""
    least = min((int(piece.ends.min()) for piece in pieces), default=0)
    most = max((int(piece.ends.max()) for piece in pieces), default=0)
    # Ends of a query differ by whole slides.
    step = int(np.gcd.reduce([*slides, *(int(piece.ends[0, 0]) - least for piece in pieces)]))
    numbers, size = [(piece.ends - least) // step for piece in pieces], (most - least) // step + 1
    if size > _MOST_PER_ROW * sum(piece.rows.num_rows for piece in pieces) + _FEW:
        used = np.unique(np.concatenate([_ends(piece.rows) for piece in pieces]))
        return used, [np.searchsorted(used, piece.ends) for piece in pieces]
    is_used = np.zeros(size if pieces else 0, np.bool_)
    for piece, (begin, end) in zip(pieces, numbers, strict=True):
        mark_instants(begin, end, slides[piece.part] // step, is_used)
    place_of = np.cumsum(is_used) - 1
    return np.flatnonzero(is_used) * step + least, [place_of[number] for number in numbers]


def _ends(rows: pa.RecordBatch) -> Ints:
    ends: Ints = rows["window_end"].cast(pa.int64()).to_numpy()
    return ends


def _coded(pieces: Sequence[_Piece], kinds: Sequence[pa.DataType]) -> tuple[list[Ints], list[pa.Array]]:
    """Return the number of each stretch's key, and the columns of the different keys, in which NULL is a key."""
    numbers: list[Ints] = [np.zeros(0 if kinds else len(piece.begin) - 1, np.int64) for piece in pieces]
    keys, known = list[pa.Array](), 1
    for column, given in enumerate(kinds):
        kind = given.value_type if pa.types.is_dictionary(given) else given
        dictionaries = [piece.keys[column].dictionary.cast(kind) for piece in pieces]
        values = pa.concat_arrays(dictionaries or [pa.array([], kind)]).unique()
        size = len(values) + 1  # NULL is the last
        codes = [_codes(piece.keys[column], values) for piece in pieces]
        if not keys:
            numbers, used = codes, np.arange(size)
        else:
            used, numbers = _dense(
                [number * size + code for number, code in zip(numbers, codes, strict=True)], known * size
            )
        keys = [key.take(pa.array(used // size)) for key in keys]
        keys.append(values.take(pa.array(used % size, mask=used % size == size - 1)))
        known = len(used)
    return numbers, keys


def _words(column: pa.Array) -> Ints:
    """Return the values of a column of 64 bits as integers, whatever stands where there is none."""
    return np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column)]


def _encoded(chunk: pa.Array) -> pa.DictionaryArray:
    return chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()


def _indices(chunk: pa.DictionaryArray) -> NDArray[np.int32]:
    """Return the places of a column's values in its dictionary; one place more is NULL."""
    indices = chunk.indices.fill_null(len(chunk.dictionary)) if chunk.null_count else chunk.indices
    found: NDArray[np.int32] = indices.to_numpy(zero_copy_only=False)
    return found


def _codes(chunk: pa.DictionaryArray, values: pa.Array) -> Ints:
    """Return the places of a column's values in `values`; one place more is NULL."""
    place_of = pc.index_in(chunk.dictionary, values).fill_null(len(values)).to_numpy().astype(np.int64)
    codes: Ints = np.append(place_of, len(values))[_indices(chunk)]
    return codes


def _dense(parts: Sequence[Ints], size: int) -> tuple[Ints, list[Ints]]:
    """Return the different numbers, all below `size`, in order, and the place of each number among them."""
    if size > _MOST_PER_ROW * sum(map(len, parts)) + _FEW:
        used, inverse = np.unique(np.concatenate(parts), return_inverse=True)
        return used, np.split(inverse.astype(np.int64), np.cumsum([len(part) for part in parts])[:-1])
    is_used = np.zeros(size, np.bool_)
    for part in parts:
        is_used[part] = True
    used = np.flatnonzero(is_used)
    place_of = np.zeros(size, np.int64)
    place_of[used] = np.arange(len(used))
    return used, [place_of[part] for part in parts]
