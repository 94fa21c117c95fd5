"""Plans row queries, and what streams keep for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from windloom.errors import WindloomError
from windloom.model.aggregate import COUNT_STAR
from windloom.model.emission import VALID_UNTIL, Emits
from windloom.model.predicate import Predicate
from windloom.model.query import Query
from windloom.model.rows import Strand
from windloom.model.stream import Stream
from windloom.model.types import DataType
from windloom.optimizer.known import Known, strand_rate
from windloom.optimizer.rows.order import ROW_ORDER, expected_rows, join_order, read_orders
from windloom.optimizer.shapes import Types, planned_components, shape_of
from windloom.plan.choices import Choices
from windloom.plan.physical import Shape
from windloom.plan.rows import PlannedRows, Store, StrandRate

#: More pairs than this, per window, are refused: a round would not end.
MOST_PAIRS = 1e9


def plan_rows(
    query: Query,
    streams: Mapping[str, Stream],
    types: Types,
    shapes: dict[Shape, int],
    known: Known,
    given: Choices | None = None,
    *,
    imagined: bool = False,
) -> PlannedRows:
    """The plan of a row query; too many pairs are refused, unless it runs already or is only imagined.

    `given` replaces the choice of the orders.
    """
    rows = query.rows
    assert rows is not None
    rates = tuple(strand_rate(streams[strand.stream], strand, known) for strand in rows.strands)
    named = None if given is None else given.options_of(ROW_ORDER).get(query.name)
    recorded = None if named is None else read_orders(named)
    orders, pairs, refused, start = [], 0.0, 0.0, 0
    for number, selection in enumerate(rows.selections):
        selected = rates[start : start + len(selection.strands)]
        start += len(selection.strands)
        orders.append(join_order(selection, selected) if recorded is None else recorded[number])
        expected, compared = expected_rows(selection, selected, orders[-1])
        pairs += expected
        # The number of values of a key is often unknown; then nothing is refused because of it.
        refused = max(refused, compared, expected if selection.joined > 1 and selected[0].knows_values else 0.0)
    if given is None and not imagined:
        _check_pairs(query, refused, rates)
    shape = _shape(query, types, streams[query.streams[0]].window_type)
    return PlannedRows(
        query,
        shapes.setdefault(shape, len(shapes)),
        tuple(orders),
        planned_components(dict.fromkeys([COUNT_STAR, *query.components] if not rows.columns else []), query, types),
        rates,
        pairs,
    )


def _shape(query: Query, types: Types, time: DataType) -> Shape:
    rows = query.rows
    assert rows is not None
    if not rows.columns:
        return replace(shape_of(query, types), time=time)
    columns = tuple((row_column.name, types[query.key_of(row_column.expression)]) for row_column in rows.columns)
    if rows.tells_end:
        columns = (*columns, (VALID_UNTIL, time))
    elif query.emission.kind is Emits.CHANGES and not rows.within:
        return Shape(columns, (), time=time, emits=Emits.CHANGES)  # rows are compared by all their values
    return Shape((), columns, time=time)


def _check_pairs(query: Query, pairs: float, rates: Sequence[StrandRate]) -> None:
    if pairs <= MOST_PAIRS:
        return
    assert query.rows is not None
    shown = {
        strand.stream: f"{strand.stream}: {rate.rate:,.0f} per second ({rate.origin.source})"
        for strand, rate in zip(query.rows.strands, rates, strict=True)
    }
    raise WindloomError(
        f"query '{query.name}' would make too many pairs",
        f"about {pairs:,.0f} per window are expected, and {MOST_PAIRS:,.0f} are the most; {'; '.join(shown.values())}",
        "join on a key (ON a.x = b.y), make windows shorter, or tell the rates of slow streams: loom.stream(…, rate=5)",
    )


def stores_of(queries: Iterable[Query], streams: Mapping[str, Stream], keep_ticks: int) -> tuple[Store, ...]:
    """The stores of all streams; with `keep_ticks`, all tuples of all streams with all their columns.

    Relations are among the streams, and are kept version by version instead.
    """
    strands: dict[str, list[Strand]] = {}
    for query in queries:
        for strand in () if query.rows is None else query.rows.strands:
            strands.setdefault(strand.stream, []).append(strand)
    stores = []
    for name, stream in streams.items():
        if stream.is_relation:
            continue
        if keep_ticks:
            columns, predicates = tuple(stream.columns), None
        elif name in strands:
            wanted = {column for strand in strands[name] for column in strand.columns}
            columns = tuple(column for column in stream.columns if column in wanted)
            predicates = _predicates(strands[name])
        else:
            continue
        kinds = tuple(stream.columns[column] for column in columns)
        stores.append(Store(name, columns, kinds, predicates, keep_ticks))
    return tuple(stores)


def _predicates(strands: Iterable[Strand]) -> tuple[Predicate, ...] | None:
    by_sql: dict[str, Predicate] = {}
    for strand in strands:
        if strand.condition is None:
            return None
        by_sql[strand.condition.sql] = strand.condition
    return tuple(by_sql[sql] for sql in sorted(by_sql))
