"""Evaluates many predicates at once: a table tells what holds for the place of a tuple among all their constants.

A predicate that only compares a value with constants cannot tell apart two values that lie between the same constants.
So each predicate is evaluated on one example of every place, and tuples are looked up. However many predicates compare
a value, it is placed once: among the constants of its bucket, or by a binary search where constants are unevenly
spaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite, isnan, prod
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.expressions.evaluate import DecodedColumns, evaluate, may_refuse
from windloom.expressions.node import Node
from windloom.kernels.compiling import compiled
from windloom.model.arrays import Codes, Ints
from windloom.model.types import TypeKind, arrow_type, as_array

#: A table has at most this many entries, and is used for at least this many tuples per entry.
MOST_ENTRIES = 1 << 14
TUPLES_PER_ENTRY = 1
#: Placing a value takes about as long as evaluating this many predicates.
PREDICATES_PER_SUBJECT = 2
#: If it takes more buckets than this for none to hold two constants, the constants are searched instead.
MOST_BUCKETS = 1 << 12

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_LOGIC = ("and", "or", "not")


@dataclass
class ComparedValue:
    """An expression that is compared with constants, and these constants in ascending order."""

    node: Node
    constants: list[Any] = field(default_factory=list)

    @property
    def places(self) -> int:
        """The number of places: below, at and between the constants; NaN; NULL."""
        return 2 * len(self.constants) + 3

    def examples(self) -> pa.Array:
        """Return a value of each place. Where none can be, no tuple is looked up, and any value will do."""
        kind = arrow_type(self.node.kind)
        if not self.constants:
            return pa.array([0, 0, None], kind)
        values = [_next(self.constants[0], kind, up=False)]
        for value in self.constants:
            values += [value, _next(value, kind, up=True)]
        nan = float("nan") if pa.types.is_floating(kind) else 0
        return pa.array([*values, nan, None], kind)

    def place(self, rows: DecodedColumns, codes: Codes) -> None:
        """Append the place of every tuple, as a digit, to a code."""
        value = evaluate(self.node, rows)
        is_floating = pa.types.is_floating(value.type)
        kind = np.float64 if is_floating else np.int64
        column = pa.repeat(value, rows.table.num_rows) if isinstance(value, pa.Scalar) else as_array(value)
        numbers = np.frombuffer(column.buffers()[1], _width(column.type))[column.offset : column.offset + len(column)]
        valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else np.empty(0, np.bool_)
        numbers = numbers.astype(kind, copy=False)
        numbers.flags.writeable = False  # like Arrow's own memory, so that kernels are compiled only once
        if self._buckets is not None:
            _place_in_bucket(numbers, valid, *self._buckets, len(self.constants), codes)
        else:
            _place(numbers, valid, *_search_tree(np.array(self.constants, kind)), len(self.constants), codes)

    @cached_property
    def _buckets(self) -> tuple[float, float, NDArray[Any], Codes] | None:
        is_floating = pa.types.is_floating(arrow_type(self.node.kind))
        return buckets(np.array(self.constants, np.float64 if is_floating else np.int64))


@dataclass(frozen=True, slots=True)
class PredicateTable:
    """Some predicates, by bit, with what they compare; `words` has their bits, a row per word of the signature."""

    subjects: tuple[ComparedValue, ...]
    bits: tuple[int, ...]
    words: Ints

    @property
    def entries(self) -> int:
        return int(self.words.shape[1])

    def pays(self, tuples: int) -> bool:
        return tuples >= TUPLES_PER_ENTRY * self.entries

    def entries_of(self, rows: DecodedColumns) -> Codes:
        """Return the number of every tuple's entry."""
        codes = np.zeros(rows.table.num_rows, np.int32)
        for subject in self.subjects:
            subject.place(rows, codes)
        return codes

    def sign(self, rows: DecodedColumns, words: Sequence[Ints]) -> None:
        """Add the bits of every tuple."""
        codes = self.entries_of(rows)
        for word, own in zip(words, self.words, strict=True):
            if own.any():
                _look_up(codes, own, word)


@dataclass(frozen=True, slots=True)
class DistinctWords:
    """A word of the signatures of a table: its distinct values, and the number of the value of each entry."""

    values: pa.Array
    number_of: Codes

    @classmethod
    def of(cls, word: Ints) -> DistinctWords:
        values, number_of = np.unique(word, return_inverse=True)
        return cls(pa.array(values), number_of.astype(np.int32))

    def column(self, entries: Codes) -> pa.DictionaryArray:
        """Return the word of every tuple, from its entry."""
        return pa.DictionaryArray.from_arrays(pa.array(take_codes(entries, self.number_of)), self.values)


def take_codes(entries: Codes, table: NDArray[Any]) -> NDArray[Any]:
    """Return the value that a table has for the entry of every tuple."""
    values = np.empty(len(entries), table.dtype)
    _take(entries, table, values)
    return values


@dataclass(slots=True)
class PredicateCluster:
    """Predicates, by bit, that may share a table, because the combinations of their places are few."""

    subjects: dict[Node, ComparedValue]
    bits: list[int]

    @property
    def entries(self) -> int:
        return prod(subject.places for subject in self.subjects.values())


def clusters(predicates: Sequence[Node]) -> list[PredicateCluster]:
    """Return the predicates that are better looked up than evaluated, in as few tables as their size allows."""
    compared = {bit: constants for bit, node in enumerate(predicates) if (constants := _compared(node))}
    subjects: dict[Node, ComparedValue] = {}
    for node, own in (pair for constants in compared.values() for pair in constants.items()):
        # As values of the type; -0.0 becomes 0.0.
        values = {pa.scalar(value, arrow_type(node.kind)).as_py() + 0 for value in own}
        known = subjects.setdefault(node, ComparedValue(node))
        known.constants = sorted({*known.constants, *values})
    together: list[PredicateCluster] = []
    for bit in sorted(compared, key=lambda each: (-len(compared[each]), each)):
        wanted = {node: subjects[node] for node in compared[bit]}
        for cluster in together:
            larger = PredicateCluster(cluster.subjects | wanted, [*cluster.bits, bit])
            if larger.entries <= MOST_ENTRIES:
                cluster.subjects, cluster.bits = larger.subjects, larger.bits
                break
        else:
            alone = PredicateCluster(wanted, [bit])
            together += [alone] if alone.entries <= MOST_ENTRIES else []
    return [each for each in together if len(each.bits) >= PREDICATES_PER_SUBJECT * len(each.subjects)]


def examples(cluster: PredicateCluster) -> DecodedColumns:
    """Return a row for each combination of places, in order of their codes; subjects are columns, named by number."""
    sizes = [subject.places for subject in cluster.subjects.values()]
    places = np.unravel_index(np.arange(prod(sizes)), sizes)
    columns = {
        str(number): subject.examples().take(pa.array(place))
        for number, (subject, place) in enumerate(zip(cluster.subjects.values(), places, strict=True))
    }
    return DecodedColumns(pa.table(columns))


def over_examples(node: Node, cluster: PredicateCluster) -> Node:
    """Return a predicate as one over the columns of `examples`."""
    names = {subject: str(number) for number, subject in enumerate(cluster.subjects)}
    if node in names:
        return Node("read", node.kind, value=names[node])
    return Node(node.op, node.kind, tuple(over_examples(operand, cluster) for operand in node.operands), node.value)


def _compared(node: Node) -> dict[Node, set[Any]] | None:
    """Return the subjects that a predicate compares, with their constants; None if it does anything else."""
    if node.op in _LOGIC:
        by_subject: dict[Node, set[Any]] = {}
        for compared in map(_compared, node.operands):
            if compared is None:
                return None
            for subject, constants in compared.items():
                by_subject.setdefault(subject, set()).update(constants)
        return by_subject
    if node.op in (*_COMPARISONS, "in", "isnull", "isnan"):
        subjects = {operand for operand in node.operands if not operand.is_constant}
        constants = {operand.value for operand in node.operands if operand.is_constant} - {None}
        if len(subjects) == 1:
            (subject,) = subjects
            is_number = subject.kind.kind in (TypeKind.INTEGER, TypeKind.FLOAT) and not may_refuse(subject)
            if is_number and not any(map(isnan, constants)):
                return {subject: constants}
    return None


def _width(kind: pa.DataType) -> Any:
    return np.dtype(kind.to_pandas_dtype())


def _next(value: Any, kind: pa.DataType, *, up: bool) -> Any:
    """Return the next value of a type; the last one has none, and is returned itself."""
    width = _width(kind)
    if pa.types.is_floating(kind):
        return width.type(np.nextafter(width.type(value), width.type(np.inf if up else -np.inf)))
    limits = np.iinfo(width)
    return min(value + 1, limits.max) if up else max(value - 1, limits.min)


def buckets(constants: NDArray[Any]) -> tuple[float, float, NDArray[Any], Codes] | None:
    """Return buckets of equal width that hold at most one constant each; None if too many would be needed.

    A value is in bucket `(value - low) · scale`, cut off at both ends. Rounding keeps the order of values, so constants
    of other buckets are on the same side of all values of a bucket. Returns `low`, `scale` and, for each bucket, the
    constant that is in it or follows it (or else the last one) and the place just below that constant.
    """
    if not len(constants):
        return None
    low = float(constants[0])
    width = float(constants[-1]) - low
    count = 1
    while count <= MOST_BUCKETS:
        scale = (count - 1) / width if width else 0.0
        if not isfinite(low) or not isfinite(width) or not isfinite(scale):
            return None
        own = np.minimum((constants.astype(np.float64) - low) * scale, count - 1).astype(np.int64)
        if (own[1:] > own[:-1]).all():
            near = np.minimum(np.searchsorted(own, np.arange(count)), len(constants) - 1)
            return low, scale, constants[near], (2 * near).astype(np.int32)
        count *= 2
    return None


def _search_tree(constants: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a complete search tree of the constants, and its leaves.

    The root is at 1, and the children of k are at 2k and 2k + 1. The last constant fills it up. A loop over its
    levels has no branch that depends on a value.
    """
    size = 1 << len(constants).bit_length()
    filler = constants[-1:] if len(constants) else np.zeros(1, constants.dtype)
    leaves = np.concatenate([constants, np.repeat(filler, size - len(constants))])
    tree = np.empty(size, constants.dtype)
    tree[0] = leaves[0]  # never read
    for level in range(size.bit_length() - 1):
        step = size >> level
        tree[1 << level : 2 << level] = leaves[step // 2 - 1 :: step]
    return tree, leaves


@compiled
def _place(numbers, valid, tree, leaves, count, codes):  # type: ignore[no-untyped-def]
    """Set `codes` to codes · places + the place of each value; `valid` is empty if there is no NULL."""
    levels = 0
    while 1 << levels < len(tree):
        levels += 1
    for i in range(len(numbers)):
        number = numbers[i]
        node = np.uint32(1)
        for _ in range(levels):
            node = np.uint32(2) * node + np.uint32(tree[node] < number)
        leaf = min(node - np.uint32(len(tree)), np.uint32(count))
        place = np.int64(2) * leaf + np.int64(leaf < count and leaves[leaf] == number)
        if number != number:
            place = 2 * count + 1
        if len(valid) and not valid[i]:
            place = 2 * count + 2
        codes[i] = codes[i] * (2 * count + 3) + place


@compiled
def _place_in_bucket(numbers, valid, low, scale, near, below, count, codes):  # type: ignore[no-untyped-def]
    """Set `codes` as `_place` does, from the bucket of each value."""
    last = np.float64(len(near) - 1)
    places = np.int32(2 * count + 3)
    for i in range(len(numbers)):
        number = numbers[i]
        bucket = (np.float64(number) - low) * scale
        bucket = bucket if bucket > 0.0 else 0.0  # NaN as well
        bucket = np.uint32(np.int32(bucket if bucket < last else last))
        constant = near[bucket]
        place = below[bucket] + np.int32(2) * np.int32(constant < number) + np.int32(constant == number)
        if number != number:
            place = np.int32(2 * count + 1)
        if len(valid) and not valid[i]:
            place = np.int32(2 * count + 2)
        codes[i] = codes[i] * places + place


@compiled
def _take(entries, table, out):  # type: ignore[no-untyped-def]
    for i in range(len(entries)):
        out[i] = table[np.uint32(entries[i])]


@compiled
def _look_up(codes, table, word):  # type: ignore[no-untyped-def]
    for i in range(len(codes)):
        word[i] |= table[np.uint32(codes[i])]
