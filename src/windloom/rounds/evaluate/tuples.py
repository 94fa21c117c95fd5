"""The projection of a woven scan, evaluated on Arrow columns: what Spark would project, or declined."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from windloom.aggregates.arrow import as_array
from windloom.expressions.arithmetic import DeclinedError
from windloom.expressions.evaluate import DecodedColumns, evaluate, may_refuse
from windloom.expressions.node import Node, columns_of
from windloom.expressions.predicate_index import (
    DistinctWords,
    PredicateTable,
    clusters,
    examples,
    over_examples,
    take_codes,
)
from windloom.model.arrays import Mask
from windloom.plan.local import LocalColumn, LocalProjection
from windloom.plan.scans import Signature
from windloom.weave.signatures import SIGNATURE_BITS


def project_tuples(local: LocalProjection, signature: Signature, table: pa.Table, tick: pa.Array) -> pa.Table:
    """`tick`, `s0…` (the signature), `x0…`: the columns of `spark.intake.projection`, of tuples that are wanted.

    Tuples without a tick are always wanted. Raises DeclinedError if Spark may refuse a tuple.
    """
    try:
        return _projected(local, signature, table, tick)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:  # an overflow, or a decimal that does not fit
        raise DeclinedError(str(error)) from None


def _projected(local: LocalProjection, signature: Signature, table: pa.Table, tick: pa.Array) -> pa.Table:
    if local.where is not None:
        kept = pa.array(_holds(local.where, DecodedColumns(table)) | _untimed(tick))
        table, tick = table.filter(kept), tick.filter(kept)
    rows = DecodedColumns(table)
    words, has_bit = _signature(local.predicates, signature, rows)
    arrays = [tick, *words, *(_column(column, rows) for column in local.columns)]
    names = ["tick", *(f"s{i}" for i in range(len(words))), *(f"x{i}" for i in range(len(local.columns)))]
    found = pa.Table.from_arrays(arrays, names)
    if has_bit is None:
        return found
    wanted = has_bit | _untimed(tick) if tick.null_count else has_bit
    return found if wanted.all() else found.filter(pa.array(wanted))


def _signature(
    predicates: tuple[Node, ...], signature: Signature, rows: DecodedColumns
) -> tuple[list[pa.Array], Mask | None]:
    """The words of the signature of every tuple; and, if others are left out, which tuples have a bit of a set.

    If one table has all predicates, the words are encoded by its distinct words, the same in all parts of a stream.
    """
    coded = _coded(predicates, signature.words)
    if coded is None or not coded[0].pays(rows.table.num_rows):
        words = _words(predicates, signature.words, rows)
        arrays = [pa.array(word) for word in words]
        wanted = _wanted(signature, words)
        return arrays if coded is None else [array.dictionary_encode() for array in arrays], wanted
    table, own = coded
    entries = table.entries_of(rows)
    wanted = _wanted(signature, list(table.words))
    if wanted is not None:
        wanted = None if wanted.all() else take_codes(entries, wanted)
    return [word.column(entries) for word in own], wanted


def _wanted(signature: Signature, words: Sequence[NDArray[np.int64]]) -> Mask | None:
    """Which signatures have a bit of a set; None if no tuples are left out."""
    if not signature.only_signed:
        return None
    wanted = np.zeros(len(words[0]), np.bool_)
    for word, bits in zip(words, signature.wanting_bits, strict=True):
        wanted |= (word & bits) != 0
    return wanted


def _words(predicates: tuple[Node, ...], count: int, rows: DecodedColumns) -> list[NDArray[np.int64]]:
    """The signature of every tuple: predicates are looked up in tables where that is possible and pays."""
    words = [np.zeros(rows.table.num_rows, np.int64) for _ in range(count)]
    looked_up: set[int] = set()
    for table in _tables(predicates, count):
        if table.pays(rows.table.num_rows):
            table.sign(rows, words)
            looked_up |= set(table.bits)
    for bit, predicate in enumerate(predicates):
        if bit not in looked_up:
            words[bit // SIGNATURE_BITS] |= _holds(predicate, rows) * np.int64(1 << bit % SIGNATURE_BITS)
    return words


@lru_cache(maxsize=16)
def _tables(predicates: tuple[Node, ...], count: int) -> tuple[PredicateTable, ...]:
    """Made once for all parts of a stream."""
    found = []
    for cluster in clusters(predicates):
        rows, words = examples(cluster), np.zeros((count, cluster.entries), np.int64)
        for bit in cluster.bits:
            holds = _holds(over_examples(predicates[bit], cluster), rows)
            words[bit // SIGNATURE_BITS] |= holds * np.int64(1 << bit % SIGNATURE_BITS)
        found.append(PredicateTable(tuple(cluster.subjects.values()), tuple(cluster.bits), words))
    return tuple(found)


@lru_cache(maxsize=16)
def _coded(predicates: tuple[Node, ...], count: int) -> tuple[PredicateTable, tuple[DistinctWords, ...]] | None:
    """The table that has all predicates, and its distinct words; None if there is no such table."""
    tables = _tables(predicates, count)
    if len(tables) != 1 or len(tables[0].bits) != len(predicates):
        return None
    return tables[0], tuple(map(DistinctWords.of, tables[0].words))


def _holds(node: Node, rows: DecodedColumns) -> Mask:
    """Where a condition is TRUE."""
    if node.op in ("and", "or") and not any(map(may_refuse, node.operands[1:])):
        combine = np.logical_and if node.op == "and" else np.logical_or
        return reduce(combine, (_holds(operand, rows) for operand in node.operands))
    if (coded := _only_coded(node, rows)) is not None:
        # Once per distinct value, not once per tuple.
        of_values = _holds(node, DecodedColumns(pa.table({coded[0]: coded[1].dictionary})))
        found: Mask = of_values[coded[1].indices.to_numpy()]
        return found
    value = evaluate(node, rows)
    if isinstance(value, pa.Scalar):
        return np.full(rows.table.num_rows, bool(value.as_py()))
    mask: Mask = (pc.fill_null(value, False) if value.null_count else value).to_numpy(zero_copy_only=False)
    return mask


def _only_coded(node: Node, rows: DecodedColumns) -> tuple[str, pa.DictionaryArray] | None:
    """The column that an expression reads, if it is only one and has a dictionary, and no NULL."""
    names = columns_of(node)
    if len(names) != 1:
        return None
    column = rows.table[next(iter(names))]
    if not pa.types.is_dictionary(column.type) or column.num_chunks != 1 or column.null_count:
        return None
    return next(iter(names)), column.chunk(0)


def _untimed(tick: pa.Array) -> Mask:
    mask: Mask = np.array(tick.is_null().to_numpy(zero_copy_only=False), np.bool_)
    return mask


def _column(column: LocalColumn, rows: DecodedColumns) -> pa.Array | pa.ChunkedArray:
    node = column.node
    if node.op == "read" and column.component is None:
        return rows.table[node.value]  # as it is, with its dictionary
    value = evaluate(node, rows)
    found = pa.repeat(value, rows.table.num_rows) if isinstance(value, pa.Scalar) else as_array(value)
    return found if column.component is None else column.component.card.woven_arrow(found)
