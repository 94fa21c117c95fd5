"""Values of tuples in another order: every value goes to the place of its tuple."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from windloom.kernels.compiling.compiled import compiled
from windloom.model.arrays import Codes

Number = TypeVar("Number", bound=np.generic)


def moved(values: NDArray[Number], places: Codes) -> NDArray[Number]:
    """The values at their new places, written in order of tuples: the places of a frequent value stay in the caches."""
    out = np.empty_like(values)
    if values.ndim == 1:
        _move(values, places, out)
    else:
        out[places] = values
    return out


@compiled
def _move(values, places, out):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        out[np.uint32(places[i])] = values[i]


def places_by_code(rows: Codes, codes: Codes, count: int) -> Codes:
    """The places of tuples in order of their codes, which are below `count`; those of a code in order of `rows`.

    If `rows` is empty, all tuples are meant, in the order in which they come.
    """
    places = np.empty(len(codes), np.int32)
    _place_by_code(rows, codes, count, places)
    return places


@compiled
def count_sort(rows, every, numbers, count, out):  # type: ignore[no-untyped-def]
    """The chosen rows in order of their numbers, below `count`; those with equal numbers stay in their order."""
    places = np.zeros(count + 1, np.int64)
    for k in range(len(out)):
        places[numbers[np.uint32(k if every else rows[k])] + 1] += 1
    for number in range(count):
        places[number + 1] += places[number]
    for k in range(len(out)):
        i = np.uint32(k if every else rows[k])
        out[places[numbers[i]]] = i
        places[numbers[i]] += 1


@compiled
def _place_by_code(rows, codes, count, places):  # type: ignore[no-untyped-def]
    following = np.zeros(count + 1, np.int32)
    for i in range(len(codes)):
        following[codes[i] + 1] += 1
    for code in range(count):
        following[code + 1] += following[code]
    for k in range(len(codes)):
        row = np.int64(rows[k]) if len(rows) else k
        own = np.uint32(codes[row])
        places[row] = following[own]
        following[own] += 1
