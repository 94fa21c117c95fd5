"""Answers of many queries side by side, over time: a row per key and instant, in one pass over the answers.

An instant is the end of a window of one of the queries. Each query contributes the last of its windows that ends at or
before it, so windows that move on in larger steps are repeated until they do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.kernels.side_by_side import mark_pairs, place_rows
from windloom.model.types import as_array
from windloom.model.windows.window import Window

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
#: The most numbers that a table of numbers may have for each row; beyond that, numbers are sorted.
_MOST_PER_ROW, _FEW = 16, 1 << 20
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class WidePart:
    """The answers of a query, the windows they are of, and the names of its columns in the wide table."""

    rows: pa.Table
    window: Window
    columns: Mapping[str, str]


def wide_over_time(parts: Sequence[WidePart], by: Sequence[str], name: str, until: int | None) -> pa.Table:
    """Return a row per key and instant, the instants of a key in order; the column `name` has the instants.

    No instant is after `until`, a tick. For a query without an answer there is NULL.
    """
    kind = parts[0].rows.schema.field("window_end").type
    names = [name, *by, *(shown for part in parts for shown in part.columns.values())]
    instants, places = _numbered(parts)
    codes, keys = _coded(parts, by)
    count = max(1, len(keys[0])) if keys else 1
    after = len(instants) if until is None else int(np.searchsorted(instants, until, side="right"))
    # Where the next window of the query ends: until there, its last answer stands.
    next_places = [
        np.minimum(np.searchsorted(instants, instants + part.window.slide_ticks), after).astype(np.int32)
        for part in parts
    ]
    # Where few of the pairs of a key and an instant are there, a part of the keys is looked at, one after another.
    stretch = max(1, (_MOST_PER_ROW * sum(map(len, places)) + _FEW) // max(1, len(instants)))
    tables = []
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for first in range(0, count, stretch):
            last = min(first + stretch, count)
            is_present = np.zeros((last - first) * len(instants), np.bool_)
            bounds = repeat(first), repeat(last)
            list(pool.map(mark_pairs, places, codes, next_places, *bounds, repeat(is_present)))
            present = np.flatnonzero(is_present)
            number_of = np.zeros(len(is_present), np.int64)
            number_of[present] = np.arange(len(present))
            key_of, instant_of = np.divmod(present, max(1, len(instants)))
            arrays = [pa.array(instants[instant_of]).cast(kind), *(key.take(pa.array(first + key_of)) for key in keys)]
            columns = partial(_columns, first, last, number_of, len(present))
            for found in pool.map(columns, parts, places, codes, next_places):
                arrays += found
            tables.append(pa.Table.from_arrays(arrays, names=names))
    return pa.concat_tables(tables)


def _columns(
    first: int,
    last: int,
    number_of: Ints,
    rows: int,
    part: WidePart,
    places: Codes,
    codes: Ints,
    next_place: Codes,
) -> list[pa.Array]:
    """Return the columns of a query, whose rows stand where their pairs do."""
    row_of = np.full(rows, -1, np.int64)
    place_rows(places, codes, next_place, first, last, number_of, row_of)
    is_missing = row_of < 0
    indices = pa.array(row_of, mask=is_missing) if is_missing.any() else pa.array(row_of)
    return [as_array(part.rows[column]).take(indices) for column in part.columns]


def _numbered(parts: Sequence[WidePart]) -> tuple[Ints, list[Codes]]:
    """Return all ends of windows in order, and the place of each row's among them."""
    ends = [np.asarray(as_array(part.rows["window_end"]).cast(pa.int64()), np.int64) for part in parts]
    least = min((int(part.min()) for part in ends if len(part)), default=0)
    most = max((int(part.max()) for part in ends if len(part)), default=0)
    # Ends of a query differ by whole slides.
    step = int(np.gcd.reduce([part.window.slide_ticks for part in parts] + [int(e[0]) - least for e in ends if len(e)]))
    instants, places = _dense([(part - least) // step for part in ends], (most - least) // step + 1)
    return instants * step + least, [place.astype(np.int32) for place in places]


def _coded(parts: Sequence[WidePart], by: Sequence[str]) -> tuple[list[Ints], list[pa.Array]]:
    """Return the number of each row's key, and the columns of the different keys, in which NULL is a key."""
    numbers: list[Ints] = [np.zeros(0 if by else part.rows.num_rows, np.int64) for part in parts]
    keys, known = list[pa.Array](), 1
    for column in by:
        chunks = [[_encoded(chunk) for chunk in part.rows[column].chunks] for part in parts]
        dictionaries = [chunk.dictionary for of_part in chunks for chunk in of_part]
        kind = parts[0].rows.schema.field(column).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        values = pa.concat_arrays([each.cast(kind) for each in dictionaries] or [pa.array([], kind)]).unique()
        size = len(values) + 1  # NULL is the last
        codes = [np.concatenate([_codes(chunk, values) for chunk in of_part] or [_NONE]) for of_part in chunks]
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


def _encoded(chunk: pa.Array) -> pa.DictionaryArray:
    return chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()


def _codes(chunk: pa.DictionaryArray, values: pa.Array) -> Ints:
    """Return the places of a column's values in `values`; one place more is NULL."""
    place_of = pc.index_in(chunk.dictionary, values).fill_null(len(values)).to_numpy().astype(np.int64)
    place_of = np.append(place_of, len(values))
    indices = chunk.indices.fill_null(len(chunk.dictionary)) if chunk.null_count else chunk.indices
    codes: Ints = place_of[indices.to_numpy(zero_copy_only=False)]
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
