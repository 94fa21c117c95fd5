"""Whether the tuples of a woven scan can be projected without Spark: our evaluator must know every expression."""

from __future__ import annotations

from windloom.expressions.functions import truth
from windloom.expressions.node import Node, columns_of
from windloom.expressions.types import NotKnownError
from windloom.expressions.typing import resolve
from windloom.language.tuple_trees import tuple_tree
from windloom.model.stream import Stream
from windloom.model.types import DataType, TypeKind
from windloom.plan.local import LocalColumn, LocalProjection
from windloom.plan.scans import Projected, WovenScan

#: Times whose ticks do not depend on settings of the session.
_TIMES = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NTZ, TypeKind.INTEGER)
#: The types that a column may have in files to be read.
_KINDS = (*_TIMES, TypeKind.FLOAT, TypeKind.DECIMAL, TypeKind.BOOLEAN, TypeKind.STRING, TypeKind.DATE)


def local_projection(scan: WovenScan, stream: Stream) -> LocalProjection | str:
    """The projection of a scan with all types, or, as text, the part that only Spark can evaluate."""
    if scan.counted_by is not None or scan.kept is not None or stream.is_relation:
        return "positions of tuples, kept tuples and relations"
    if stream.columns[stream.time].kind not in _TIMES:
        return f"times of type {stream.columns[stream.time]}"
    signature = scan.signature
    try:
        where = None if signature.where is None else truth("WHERE", _node(signature.where.sql, stream))
        predicates = tuple(truth("WHERE", _node(predicate.sql, stream)) for predicate in signature.predicates)
        columns = tuple(_column(projected, scan, stream) for projected in scan.columns)
    except NotKnownError as unknown:
        return str(unknown)
    reads = {stream.time}
    for node in (*predicates, *(column.node for column in columns), *(() if where is None else (where,))):
        reads |= columns_of(node)
    others = [name for name in sorted(reads) if stream.columns[name].kind not in _KINDS]
    if others:
        return f"column '{others[0]}' of type {stream.columns[others[0]]}"
    return LocalProjection(tuple(sorted(reads)), where, predicates, columns)


def _column(projected: Projected, scan: WovenScan, stream: Stream) -> LocalColumn:
    component = projected.component
    if component is None:
        node = _node(projected.guarded_sql(scan.signature.predicates), stream)
        kind: DataType = node.kind
        if kind.kind not in _KINDS:  # Spark decides about values of any other type
            raise NotKnownError(f"a value of type {kind}")
        return LocalColumn(node)
    argument_type, argument = component.argument_type, component.component.argument
    if argument_type is None or argument is None or not component.card.weaves_arrow(argument_type):
        raise NotKnownError(f"what is kept of '{component.component}'")
    return LocalColumn(_node(projected.guarded_sql(scan.signature.predicates, argument.sql), stream), component)


def _node(sql: str, stream: Stream) -> Node:
    return resolve(tuple_tree(sql, stream.columns), stream.columns)
