"""Plans row queries, and what streams keep for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from windloom.errors import WindloomError
from windloom.model.aggregate import COUNT_STAR
from windloom.model.clauses import VALID_UNTIL, Emits
from windloom.model.query import Query
from windloom.model.rows import Reports, RowInput, Selection
from windloom.model.stream import JoinKind, Stream
from windloom.model.time import TICKS_PER_SECOND
from windloom.model.types import DataType
from windloom.optimizer.cost.constants import Constants
from windloom.optimizer.facts import PlanningFacts, strand_rate
from windloom.optimizer.joins.order import Order, Size, cheapest_order
from windloom.plan.costs import Choices
from windloom.plan.plan import Shape, Types, planned_components, shape_of
from windloom.plan.rows import PlannedRows, Retention, StrandRate

# The order in which the strands of a row query are joined, by the pairs that orders are expected to make.
#
# A round joins the new tuples of each strand with the present ones of the others, in one global order, as source E does
# (§5.3). A hash join touches the rows it reads and the rows it makes; without a key it touches every pair.

#: The share of pairs that a condition without a key is assumed to let through.
RESIDUAL_SHARE = 1 / 3


#: The name of the switch for these orders, and the separator between those of several selections.
ROW_ORDER, _BETWEEN = "row order", " / "


def write_orders(orders: Sequence[Order]) -> str:
    """Return the orders of all selections of a query as the option of a switch.

    >>> write_orders([(0, 2, 1), (0,)])
    '0 2 1 / 0'
    """
    return _BETWEEN.join(" ".join(map(str, order)) for order in orders)


def read_orders(text: str) -> list[Order]:
    """Return the orders that `write_orders` wrote.

    >>> read_orders("0 2 1 / 0")
    [(0, 2, 1), (0,)]
    """
    return [tuple(map(int, order.split())) for order in text.split(_BETWEEN)]


def strand_sizes(selection: Selection, rates: Sequence[StrandRate]) -> list[Size]:
    """Return the tuples in a window of each joined strand, and the values of its keys among them."""
    sizes = []
    for strand, rate in zip(selection.strands[: selection.joined], rates, strict=False):
        rows = rate.rate * strand.window.range_ticks / TICKS_PER_SECOND
        sizes.append(Size(rows, max(1.0, min(rate.values, rows))))
    return sizes


def join_order(selection: Selection, rates: Sequence[StrandRate]) -> Order:
    """Return the cheapest global order; if a LEFT join is among the strands, the order in which they are written."""
    every = tuple(range(selection.joined))
    if selection.joined < 3 or any(attached.kind is not JoinKind.INNER for attached in selection.attached):
        return every
    sizes = strand_sizes(selection, rates)
    mean = sum(rate.rate for rate in rates[: selection.joined]) / selection.joined
    fast = sorted((i for i in every if rates[i].rate > mean), key=lambda i: -rates[i].rate)
    first, rows = [0], sizes[0]
    while len(first) < len(sizes):  # next the strand with the fewest rows after joining (source E, initial heuristic)
        after = {i: joined(selection, set(first), rows, i, sizes[i]) for i in every if i not in first}
        following = min(after, key=lambda i: (after[i].rows, i))
        rows = after[following]
        first.append(following)
    return cheapest_order(selection.joined, order_cost(selection, rates), tuple(first), fast)


def order_cost(selection: Selection, rates: Sequence[StrandRate]) -> Callable[[Order], float]:
    """Return the rows that are touched per second if new tuples of each strand look up the others in a global order."""
    sizes = strand_sizes(selection, rates)

    def cost(order: Order) -> float:
        total = 0.0
        for number in order:
            done, rows_so_far = {number}, Size(1.0, sizes[number].values)
            for other in order:
                if other == number:
                    continue
                joined_rows = joined(selection, done, rows_so_far, other, sizes[other])
                is_keyed = links(selection, done, other)[0] > 0
                touched = rows_so_far.rows + joined_rows.rows if is_keyed else rows_so_far.rows * sizes[other].rows
                total += rates[number].rate * touched
                done, rows_so_far = done | {other}, joined_rows
        return total

    return cost


def joined(selection: Selection, done: set[int], rows: Size, other: int, size: Size) -> Size:
    """Return the rows after one more strand, by the keys and conditions that link it to those before."""
    keys, conditions = links(selection, done, other)
    if not keys:
        both = Size(rows.rows * size.rows, max(rows.values, size.values))
    else:
        both = rows.joined(size)
        # Further keys are taken to divide as the first does, but never below one row per pair of equal keys.
        for _ in range(keys - 1):
            both = Size(both.rows / max(1.0, min(rows.values, size.values) ** 0.5), both.values)
    share = RESIDUAL_SHARE**conditions
    return Size(both.rows * share, both.values)


def links(selection: Selection, done: set[int], other: int) -> tuple[int, int]:
    """Return how many keys, and how many other conditions, are decided when a strand is joined to those before it."""
    left_join = selection.attached[other - 1].on if other else ()  # of a LEFT join
    decided = [
        condition
        for condition in (*selection.conditions, *left_join)
        if other in condition.strands and set(condition.strands) <= done | {other} and len(condition.strands) > 1
    ]
    keys = sum(condition.is_key for condition in decided)
    return keys, len(decided) - keys


def expected_rows(selection: Selection, rates: Sequence[StrandRate], order: Order) -> tuple[float, float]:
    """Return the rows of one window, and the pairs that must be looked at without a key to find them."""
    sizes = strand_sizes(selection, rates)
    done, rows_so_far, compared = {order[0]}, sizes[order[0]], 0.0
    for other in order[1:]:
        if not links(selection, done, other)[0]:
            compared += rows_so_far.rows * sizes[other].rows
        rows_so_far = joined(selection, done, rows_so_far, other, sizes[other])
        done |= {other}
    return rows_so_far.rows, compared


class TooManyPairsError(WindloomError):
    """A join would make more pairs than a round can, judging by the rates of its streams."""


#: More pairs than this, per window, are refused: a round would not end.
MOST_PAIRS = 1e9


def plan_rows(
    query: Query,
    streams: Mapping[str, Stream],
    types: Types,
    shapes: dict[Shape, int],
    known: PlanningFacts,
    given: Choices | None = None,
    *,
    imagined: bool = False,
) -> PlannedRows:
    """Return the plan of a row query; too many pairs are refused, unless it runs already or is only imagined.

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
    if given is None and not imagined and refused > MOST_PAIRS:
        shown = {
            strand.stream: f"{strand.stream}: {rate.rate:,.0f} per second ({rate.origin.source})"
            for strand, rate in zip(rows.strands, rates, strict=True)
        }
        raise TooManyPairsError(
            f"query '{query.name}' would make too many pairs",
            f"about {refused:,.0f} per window are expected, and {MOST_PAIRS:,.0f} are the most; "
            + "; ".join(shown.values()),
            "join on a key (ON a.x = b.y), make windows shorter, or tell the rates of slow streams: "
            "loom.stream(…, rate=5)",
        )
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


def stores_of(queries: Iterable[Query], streams: Mapping[str, Stream], keep_ticks: int) -> tuple[Retention, ...]:
    """Return the stores of all streams; with `keep_ticks`, all tuples of all streams with all their columns.

    Relations are among the streams, and are kept version by version instead.
    """
    strands: dict[str, list[RowInput]] = {}
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
            conditions = [strand.condition for strand in strands[name]]
            by_sql = {condition.sql: condition for condition in conditions if condition is not None}
            predicates = None if None in conditions else tuple(by_sql[sql] for sql in sorted(by_sql))
        else:
            continue
        kinds = tuple(stream.columns[column] for column in columns)
        stores.append(Retention(name, columns, kinds, predicates, keep_ticks))
    return tuple(stores)


# The predicted cost of the Spark job of a row query, by the rows that its joins read and make.


def row_round_seconds(planned: PlannedRows, constants: Constants) -> float:
    """Return the seconds of one round, which is as long as those of its streams are, with the rates of the plan.

    A row that a join reads, looks up or makes is assumed to cost what a partial does, which Spark hashes and sends.
    Where all rows of a window are reported, each counts once per window.
    """
    rows, touched, first = planned.rows, 0.0, 0
    for selection, order in zip(rows.selections, planned.orders, strict=True):
        rates = planned.rates[first : first + len(selection.strands)]
        first += len(selection.strands)
        touched += sum(rate.rate for rate in rates) + order_cost(selection, rates)(order)
        if rows.reports is Reports.STANDING and not rows.within:
            ends_per_second = TICKS_PER_SECOND / planned.query.window.slide_ticks
            touched += expected_rows(selection, rates, order)[0] * ends_per_second
    return touched * constants.seconds("partial") * max(rate.round_seconds for rate in planned.rates)
