"""Columns of a block: numbers, keys, codes and ranks of every type, however Arrow has laid the values out."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from windloom.kernels.hashing import float_values
from windloom.kernels.tuples.columns import MOST_SPAN, SMALL_SPAN, Column, MovedColumn

UTC = datetime.UTC
NOW = datetime.datetime(2026, 1, 5, 12, 30, tzinfo=UTC)

#: Values of every type that Spark may project, the smallest and the largest among them.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    **{
        f"int{bits}": (pa.type_for_alias(f"int{bits}"), [3, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, 3, -1])
        for bits in (8, 16, 32, 64)
    },
    "few int64": (pa.int64(), [7, 5, 7, 9, 5, -2]),
    "float": (pa.float32(), [1.5, -0.0, math.nan, 0.0, math.inf, -1.5, 1.5, -math.inf]),
    "double": (pa.float64(), [0.1, -0.0, math.nan, 0.0, math.inf, -1e300, 0.1, 5e-324, -math.inf]),
    "boolean": (pa.bool_(), [True, False, True, False, False, True, True, True, True]),
    "decimal": (pa.decimal128(12, 2), [Decimal("2.50"), Decimal("-1.00"), Decimal("2.50"), Decimal("0.00")]),
    "wide decimal": (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0), Decimal(-1)]),
    "string": (pa.string(), ["b", "", "ä", "b", "z", "a" * 50]),
    "large string": (pa.large_string(), ["b", "", "ä", "b"]),
    "binary": (pa.binary(), [b"\xff", b"", b"\x00", b"\xff", b"a"]),
    "large binary": (pa.large_binary(), [b"\xff", b"", b"\xff"]),
    "date": (pa.date32(), [datetime.date(2026, 1, 5), datetime.date(1969, 12, 31), datetime.date(2026, 1, 5)]),
    "timestamp": (pa.timestamp("us"), [NOW.replace(tzinfo=None), datetime.datetime(1960, 1, 1), datetime.datetime.min]),
    "timestamp of UTC": (pa.timestamp("us", tz="UTC"), [NOW, NOW, datetime.datetime(1960, 1, 1, tzinfo=UTC)]),
    "timestamp of a zone": (pa.timestamp("us", tz="Asia/Kolkata"), [NOW, datetime.datetime(1960, 1, 1, tzinfo=UTC)]),
}


def laid_out(values: list[Any], kind: pa.DataType) -> list[pa.ChunkedArray]:
    """The same values whole, in many chunks, empty ones among them, and as parts of longer arrays."""
    whole = pa.array(values, kind)
    wider = pa.concat_arrays([whole.slice(0, 1), pa.nulls(2, kind), whole, pa.nulls(1, kind), whole])
    empty = whole.slice(0, 0)
    middle = len(values) // 2
    cut = [wider.slice(3, middle), empty, wider.slice(3 + middle, len(values) - middle)]
    single = [whole.slice(i, 1) for i in range(len(values))]
    return [pa.chunked_array(chunks, kind) for chunks in ([whole], cut, [empty, *single], [empty, whole, empty])]


def plain(value: Any) -> Any:
    """What is told apart: NaN is equal to itself, 0.0 to -0.0, and instants to instants of another zone."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value.astimezone(UTC) if isinstance(value, datetime.datetime) and value.tzinfo else value


def place(value: Any) -> tuple[bool, Any]:
    """As Spark orders."""
    found = plain(value)
    return (True, 0.0) if found == "NaN" else (False, found)


@pytest.mark.parametrize("layout", range(4))
@pytest.mark.parametrize("has_null", [False, True])
@pytest.mark.parametrize("name", VALUES)
class TestEveryType:
    def made(self, name: str, has_null: bool, layout: int) -> tuple[Column, list[Any]]:
        kind, values = VALUES[name]
        values = [*values[:2], None, *values[2:], None] if has_null else values
        return Column(laid_out(values, kind)[layout]), values

    def test_tuples_without_a_value_are_known(self, name: str, has_null: bool, layout: int) -> None:
        column, values = self.made(name, has_null, layout)
        assert len(column) == len(values)
        assert (column.valid is not None) == has_null
        if column.valid is not None:
            assert column.valid.tolist() == [value is not None for value in values]

    def test_keys_have_the_order_of_the_values(self, name: str, has_null: bool, layout: int) -> None:
        column, values = self.made(name, has_null, layout)
        for keys in (column.keys, column.equal_keys):
            assert keys.dtype == np.int64
            pairs = sorted(
                (place(value), int(key)) for value, key in zip(values, keys, strict=True) if value is not None
            )
            for (left, low), (right, high) in pairwise(pairs):
                assert low <= high
                assert left == right or low < high
        equal: dict[Any, set[int]] = {}
        for value, key in zip(values, column.equal_keys, strict=True):
            if value is not None:
                equal.setdefault(place(value), set()).add(int(key))
        assert all(len(keys) == 1 for keys in equal.values())

    def test_codes_tell_values_apart_as_spark_groups_them(self, name: str, has_null: bool, layout: int) -> None:
        column, values = self.made(name, has_null, layout)
        coded = column.coded
        dictionary = [plain(value) for value in coded.dictionary.to_pylist()]
        assert [dictionary[code] for code in coded.codes] == [plain(value) for value in values]
        assert len(set(dictionary)) == len(dictionary)
        assert coded.codes.dtype == np.int32

    def test_ranks_are_places_among_the_values_in_order(self, name: str, has_null: bool, layout: int) -> None:
        column, values = self.made(name, has_null, layout)
        ranked = column.ranked
        dictionary = ranked.dictionary.to_pylist()
        distinct = sorted({place(value) for value in values if value is not None})
        known = [i for i, value in enumerate(values) if value is not None]
        for i in known:
            assert place(dictionary[ranked.ranks[i]]) == place(values[i])
        used = [place(value) for value in dictionary if place(value) in distinct]
        assert used == distinct


@pytest.mark.parametrize("layout", range(4))
@pytest.mark.parametrize("name", [name for name in VALUES if "int" in name or name in ("boolean", "date")])
def test_numbers_are_64_bits_wide(name: str, layout: int) -> None:
    kind, values = VALUES[name]
    column = Column(laid_out([*values, None], kind)[layout])
    epoch = datetime.date(1970, 1, 1)
    expected = [(value - epoch).days if isinstance(value, datetime.date) else int(value) for value in values]
    assert column.integers[: len(values)].tolist() == expected
    assert column.integers.flags.writeable


def test_instants_are_microseconds() -> None:
    for zone in (None, "UTC", "America/New_York"):
        found = Column(pa.chunked_array([pa.array([1_700_000_000_000_001, -5], pa.timestamp("us", tz=zone))]))
        assert found.integers.tolist() == [1_700_000_000_000_001, -5]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int16(), [3, -4]),
        (pa.float32(), [0.5, math.inf]),
        (pa.float64(), [0.1, -1e300]),
        (pa.decimal128(12, 2), [Decimal("2.50"), Decimal("-1.25")]),
    ],
)
def test_numbers_of_every_type_are_doubles(kind: pa.DataType, values: list[Any]) -> None:
    column = Column(pa.chunked_array([pa.array([*values, None], kind).slice(0, 1), pa.array([values[1], None], kind)]))
    assert column.floats[:2].tolist() == [float(value) for value in values]


@pytest.mark.parametrize("layout", range(4))
def test_decimals_are_four_words_of_which_the_highest_is_signed(layout: int) -> None:
    values = [Decimal(-1), Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(2**32), Decimal(-(2**96))]
    limbs = Column(laid_out(values, pa.decimal128(38, 0))[layout]).limbs
    found = [
        sum(int(word) << 32 * i for i, word in enumerate(row[:3])) + (int(np.int32(row[3])) << 96) for row in limbs
    ]
    assert found == [int(value) for value in values]


def test_short_decimals_are_as_wide_as_others() -> None:
    for kind in (pa.decimal32(5, 2), pa.decimal64(12, 2), pa.decimal128(12, 2)):
        limbs = Column(pa.chunked_array([pa.array([Decimal("-1.25"), Decimal("3.00")], kind)])).limbs
        assert limbs[:, 0].astype(np.int32).tolist() == [-125, 300]
        assert limbs[:, 3].astype(np.int32).tolist() == [-1, 0]


def test_nan_is_one_value_whatever_its_bits() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001, 0x7FF0000000000001], np.uint64)
    values = np.concatenate([bits.view(np.float64), [1.0]])
    column = Column(pa.chunked_array([pa.array(values)]))
    assert len(column.coded.dictionary) == len(column.ranked.dictionary) == 2
    assert len(set(column.keys[:4].tolist())) == 1
    assert column.keys[0] > column.keys[4]
    short = Column(pa.chunked_array([pa.array(np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32))]))
    assert len(short.coded.dictionary) == 1
    assert len(set(short.keys.tolist())) == 1


def test_minus_zero_is_below_zero_and_equal_to_it_where_that_counts() -> None:
    column = Column(pa.chunked_array([pa.array([-0.0, 0.0, None])]))
    assert column.keys[0] < column.keys[1]
    assert column.equal_keys[0] == column.equal_keys[1]
    assert column.coded.codes[0] == column.coded.codes[1] != column.coded.codes[2]
    assert str(column.coded.dictionary[0]) == "0.0"


@pytest.mark.parametrize("span", [SMALL_SPAN, SMALL_SPAN + 1, MOST_SPAN + 1, 2**63])
def test_integers_are_codes_by_subtraction_only_where_they_lie_close_together(span: int) -> None:
    values = [-5, span - 6, -5, 0]
    coded = Column(pa.chunked_array([pa.array(values, pa.int64())])).coded
    assert coded.dictionary.take(pa.array(coded.codes)).to_pylist() == values
    assert len(coded.dictionary) == (span if span <= SMALL_SPAN else 3)


@pytest.mark.parametrize(("tuples", "has_null"), [(0, False), (3, True)])
def test_a_column_of_nothing_but_null_has_no_values(tuples: int, has_null: bool) -> None:
    column = Column(pa.chunked_array([pa.nulls(tuples)]))
    assert (column.valid is not None) == has_null
    assert len(column.ranked.dictionary) == 0
    assert column.coded.codes.tolist() == [0] * tuples
    assert len(column.keys) == tuples


@pytest.mark.parametrize("name", VALUES)
def test_a_column_of_no_tuples_is_empty(name: str) -> None:
    kind, _ = VALUES[name]
    for chunks in ([], [pa.array([], kind)], [pa.array([], kind)] * 2):
        column = Column(pa.chunked_array(chunks, kind))
        assert column.valid is None
        assert len(column) == len(column.keys) == len(column.coded.codes) == len(column.ranked.ranks) == 0
        assert len(column.coded.dictionary) == len(column.ranked.dictionary) == 0


@pytest.mark.parametrize("values", [["b", "", "ä", "b", "z"], ["b", None, "b"], [None, None]])
def test_a_column_with_a_dictionary_is_like_one_without(values: list[Any]) -> None:
    plain = pa.chunked_array([pa.array(values[:2], pa.string()), pa.array(values[2:], pa.string())])
    with_dictionary, without = Column(plain.dictionary_encode()), Column(plain)
    assert with_dictionary.type == without.type
    for column in (with_dictionary, without):
        coded, ranked = column.coded, column.ranked
        assert coded.dictionary.take(pa.array(coded.codes)).to_pylist() == values
        assert ranked.dictionary.to_pylist() == sorted({value for value in values if value is not None})
    known = [i for i, value in enumerate(values) if value is not None]
    assert with_dictionary.ranked.ranks[known].tolist() == without.ranked.ranks[known].tolist()
    assert (with_dictionary.valid is None) == (without.valid is None)


def test_a_dictionary_that_has_a_value_twice_is_made_anew() -> None:
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["a", "b", "a"]))
    coded = Column(pa.chunked_array([twice])).coded
    assert coded.codes[0] == coded.codes[2] != coded.codes[1]


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("with_null", [False, True])
def test_a_column_in_another_order_is_the_column_of_moved_values(name: str, with_null: bool) -> None:
    kind, values = VALUES[name]
    values = [*values, None] if with_null else values
    places = np.random.default_rng(1).permutation(len(values)).astype(np.int32)
    back = np.argsort(places)
    found = MovedColumn(Column(pa.chunked_array([pa.array(values, kind)])), places)
    truth = Column(pa.chunked_array([pa.array(values, kind).take(pa.array(back))]))
    assert len(found) == len(truth)
    assert found.column.cast(kind).equals(truth.column.cast(kind)) or "nan" in str(truth.column)
    valid = np.ones(len(values), np.bool_) if truth.valid is None else truth.valid
    assert (found.valid is None) == (truth.valid is None)
    assert found.valid is None or (found.valid == valid).all()
    ranks = found.ranked, truth.ranked
    assert (ranks[0].ranks[valid] == ranks[1].ranks[valid]).all()
    taken = [each.coded.dictionary.take(pa.array(each.coded.codes)) for each in (found, truth)]
    assert str(taken[0]) == str(taken[1])
    if not truth.is_ranked:
        for what in ("keys", "equal_keys"):
            assert (getattr(found, what)[valid] == getattr(truth, what)[valid]).all()
    if pa.types.is_decimal(kind):
        assert (found.limbs[valid] == truth.limbs[valid]).all()
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        assert np.array_equal(found.floats[valid], truth.floats[valid], equal_nan=True)
    if pa.types.is_integer(kind):
        assert found.span == (int(found.integers.min()), int(found.integers.max()))
        assert (found.integers[valid] == truth.integers[valid]).all()


def test_keys_of_floats_are_in_spark_s_order() -> None:
    """All values of the same sign are in the order of their bits; NaN, of any sign and payload, is above all."""
    rng = np.random.default_rng(3)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324, 1.7e308, -1.7e308])
    payloads = np.array([0x7FF0000000000001, -1, 0x7FFFFFFFFFFFFFFF], np.int64).view(np.float64)
    values = np.concatenate([special, payloads, rng.integers(-(2**63), 2**63, 5_000).view(np.float64)])
    keys = Column(pa.chunked_array([pa.array(values)])).keys
    is_nan = np.isnan(values)
    assert len(set(keys[is_nan].tolist())) == 1
    assert keys[is_nan][0] > keys[~is_nan].max()
    numbers, own = values[~is_nan], keys[~is_nan]
    order = np.lexsort([~np.signbit(numbers), numbers])  # -0.0 before 0.0
    assert (np.diff(own[order]) >= 0).all()
    assert ((np.diff(own[order]) == 0) == (np.diff(numbers[order].view(np.int64)) == 0)).all()
    assert (float_values(own).view(np.int64) == numbers.view(np.int64)).all()
