"""Random joins for tests of folds: tuples of sides, what sides answer, and the join of the tuples by its definition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from support.native import field_types, fields_of
from support.user_aggregates import DEFINITIONS
from windloom.aggregates.columns import ComponentColumns, WindowValues
from windloom.aggregates.define import define_aggregate
from windloom.aggregates.registry import PlannedComponent, lift, lower
from windloom.aggregates.user_defined import UserAggregates
from windloom.answers.joins.terms import FoldedRows, FoldTypes, SideRows
from windloom.model import Aggregate, Component, DataType, Expression, TimeWindow, UserDefined, WindowedStream
from windloom.model.aggregate import COUNT_STAR
from windloom.model.expression import ColumnRef, apply
from windloom.model.join import Corner, Folded, Join, KeyPair, Link, Product, Side, SideComponent, SumOfProducts
from windloom.model.stream import JoinKind
from windloom.model.types import arrow_type
from windloom_tools.oracle.answers import evaluate
from windloom_tools.oracle.scalars import scalar

Row = dict[str, Any]

#: The columns of every side; `f` is for filters.
KINDS = {
    name: DataType.parse(kind)
    for name, kind in {
        "g": "string", "h": "int", "k": "bigint", "r": "double", "n": "bigint", "i": "int", "x": "double", "y": "float",
        "d": "decimal(10,2)", "w": "decimal(30,4)", "s": "string", "b": "boolean", "f": "boolean", "tick": "bigint",
    }.items()
}  # fmt: skip
GROUPING = ("g", "h", "k", "r")
PAIRING = (JoinKind.INNER, JoinKind.LEFT)


@dataclass(frozen=True)
class Asked:
    """An aggregate over the columns `s{side}.{column}` of joined tuples, and how its components are folded."""

    aggregate: Aggregate
    folded: tuple[Folded, ...]
    kind: DataType | None  # of the argument
    sides: tuple[int, ...]
    tick: str = "s0.tick"


@dataclass
class JoinCase:
    """A join over tuples. A tuple of side i counts in the windows that end at `tick … tick + ranges[i] - 1`."""

    ends: int
    ranges: tuple[int, ...]
    links: tuple[Link, ...]
    groups: tuple[tuple[int, int], ...]
    tuples: list[list[Row]]
    asked: list[Asked] = field(default_factory=list)
    components: list[list[Component]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.components = [[COUNT_STAR] for _ in self.ranges]

    def component(self, side: int, component: Component) -> int:
        """The number of a component of a side, which then has it."""
        held = self.components[side]
        if component not in held:
            held.append(component)
        return held.index(component)

    @property
    def visible(self) -> list[int]:
        """The sides that the result has columns of."""
        found = [0]
        for link in self.links:
            if link.kind in PAIRING and link.parent in found:
                found.append(link.child)
        return sorted(found)

    @property
    def join(self) -> Join:
        sides = []
        for i, components in enumerate(self.components):
            source = WindowedStream(f"s{i}", TimeWindow(10 * self.ranges[i], 10), f"s{i}")
            grouping = tuple(Expression.of_column(name) for name in GROUPING)
            sides.append(Side(source, None, None, grouping, tuple(components)))
        folded = tuple(folded_component for asked in self.asked for folded_component in asked.folded)
        return Join(tuple(sides), self.links, self.groups, folded)

    @property
    def types(self) -> FoldTypes:
        sides = tuple(tuple(planned_of(component) for component in components) for components in self.components)
        folded = tuple(
            PlannedComponent(component, asked.kind) for asked in self.asked for component in asked.aggregate.components
        )
        return FoldTypes(sides, folded, tuple(tuple(KINDS[name] for name in GROUPING) for _ in sides))

    @property
    def sides(self) -> list[SideRows]:
        return [self._side(i) for i in range(len(self.ranges))]

    def _side(self, number: int) -> SideRows:
        held: dict[tuple[Any, ...], dict[int, list[Row]]] = {}
        shown = {}
        for row in self.tuples[number]:
            key = tuple(plain_key(row[name]) for name in GROUPING)
            shown.setdefault(key, [math.nan if value == "NaN" else value for value in key])
            lane = held.setdefault(key, {})
            for end in ends_of(row, self.ranges[number], self.ends):
                lane.setdefault(end, []).append(row)
        held = {key: lane for key, lane in held.items() if lane}
        rows = [(end, lane[end]) for lane in held.values() for end in sorted(lane)]
        combined = tuple(
            combined_of(planned_of(component), [members for _, members in rows])
            for component in self.components[number]
        )
        keys = [
            pa.array([shown[key][place] for key in held], arrow_type(KINDS[name]))
            for place, name in enumerate(GROUPING)
        ]
        bounds = np.concatenate([[0], np.cumsum([len(lane) for lane in held.values()])]).astype(np.int64)
        return SideRows(keys, bounds, np.array([end for end, _ in rows], np.int32), combined)

    def joined(self, end: int) -> list[Row]:
        """The tuples of the join whose windows end at one end, by the definition of the join."""
        alive = [
            [row for row in rows if end in ends_of(row, self.ranges[i], self.ends)]
            for i, rows in enumerate(self.tuples)
        ]
        return [self._flat(matched) for matched in self._matches(0, alive)]

    def _matches(self, side: int, alive: list[list[Row]]) -> list[dict[int, Row | None]]:
        """Every tuple of a side with all combinations of tuples that hang on it, by side."""
        found: list[dict[int, Row | None]] = [{side: row} for row in alive[side]]
        for link in self.links:
            if link.parent != side:
                continue
            below = self._matches(link.child, alive)
            found = [joined for whole in found for joined in self._linked(link, whole, below)]
        return found

    def _linked(
        self, link: Link, whole: dict[int, Row | None], below: list[dict[int, Row | None]]
    ) -> list[dict[int, Row | None]]:
        parent = whole[link.parent]
        assert parent is not None
        matching = [match for match in below if matches(link, parent, match[link.child])]
        match link.kind:
            case JoinKind.INNER:
                return [whole | match for match in matching]
            case JoinKind.LEFT:
                return [whole | match for match in matching] or [whole]
            case JoinKind.SEMI:
                return [whole] if matching else []
            case JoinKind.ANTI:
                return [] if matching else [whole]

    def _flat(self, whole: dict[int, Row | None]) -> Row:
        flat: Row = {}
        for side in self.visible:
            own = whole.get(side)
            flat |= {f"s{side}.{name}": None if own is None else own[name] for name in KINDS}
        return flat

    def truth(self) -> dict[tuple[Any, ...], list[Any]]:
        """The answer by (end, group): every aggregate over joined tuples."""
        found = {}
        for end in range(self.ends):
            held: dict[tuple[Any, ...], list[Row]] = {}
            for joined in self.joined(end):
                key = tuple(plain_key(joined[f"s{side}.{GROUPING[place]}"]) for side, place in self.groups)
                held.setdefault(key, []).append(joined)
            for key, rows in held.items():
                found[end, *key] = [
                    (evaluate(asked.aggregate, rows, asked.tick), scale_of(asked, rows)) for asked in self.asked
                ]
        return found

    def lowered(self, folded: FoldedRows) -> dict[tuple[Any, ...], list[Any]]:
        """The answer of a fold in the same form; a value that is refused is "refused"."""
        groups = np.repeat(np.arange(len(folded.bounds) - 1), np.diff(folded.bounds))
        refused = {(refusal.component, refusal.row) for refusal in folded.refused}
        columns, place = [], 0
        for asked in self.asked:
            mine = range(place, place + len(asked.folded))
            place = mine.stop
            bad = {row for component, row in refused if component in mine}
            combined = [
                component
                for component in folded.combined[mine.start : mine.stop]
                if isinstance(component, WindowValues)
            ]
            values = lower(asked.aggregate, asked.kind, combined, lambda row, text, bad=bad: bad.add(row)).to_pylist()
            columns.append(["refused" if row in bad else value for row, value in enumerate(values)])
        found: dict[tuple[Any, ...], list[Any]] = {}
        keys = [column.to_pylist() for column in folded.groups]
        for row, end in enumerate(folded.ends.tolist()):
            key = (end, *(plain_key(column[groups[row]]) for column in keys))
            assert key not in found, f"row {key} twice"
            found[key] = [column[row] for column in columns]
        return found


@cache
def planned_of(component: Component) -> PlannedComponent:
    kind = None if component.argument is None else KINDS[str(component.argument.column)]
    return PlannedComponent(component, kind)


def combined_of(planned: PlannedComponent, rows: list[list[Row]]) -> WindowValues:
    """What a side answers, from the tuples of each row."""
    if planned.component.own is not None:
        return _own_of(planned, rows)
    fields = [fields_of(planned, members) for members in rows]
    kinds = field_types(planned, KINDS)
    native = [pa.array([values[i] for values in fields], kind) for i, kind in enumerate(kinds)]
    if len(planned.fields) > len(kinds):  # wide decimals come with the number of their values
        native.append(pa.array([len(values_of(planned, members)) for members in rows], pa.int64()))
    lifted = lift(planned, native)
    assert isinstance(lifted, ComponentColumns)
    return WindowValues(lifted.limbs, None if lifted.valid is None else lifted.valid.value > 0, lifted.dictionary)


def _own_of(planned: PlannedComponent, rows: list[list[Row]]) -> WindowValues:
    own = planned.component.own
    assert own is not None
    values, known = [], []
    for members in rows:
        total = own.neutral
        mine = values_of(planned, members)
        for value in mine:
            total = own.combine(total, own.lift(value))
        values.append(total if own.value_class is not None else (total,))
        known.append(bool(mine))
    family = UserAggregates().family(planned)
    columns = [np.array([value[i] for value in values], kind) for i, kind in enumerate(family.kinds)]
    return WindowValues((family.of(*columns),), np.array(known, np.bool_), None)


def values_of(planned: PlannedComponent, rows: list[Row]) -> list[Any]:
    """The arguments of a component that are not NULL, of the tuples that pass its filter."""
    where, argument = planned.component.where, planned.component.argument
    assert argument is not None
    passing = [row for row in rows if where is None or scalar(where.sql)(row) is True]
    return [row[str(argument.column)] for row in passing if row[str(argument.column)] is not None]


def ends_of(row: Row, span: int, ends: int) -> range:
    return range(max(0, row["tick"]), max(0, min(ends, row["tick"] + span)))


def matches(link: Link, parent: Row, child: Row | None) -> bool:
    assert child is not None
    for pair in link.keys:
        left, right = parent[GROUPING[pair.parent]], child[GROUPING[pair.child]]
        if left is None or right is None:
            if not (pair.null_safe and left is right):
                return False
        elif plain_key(left) != plain_key(right):
            return False
    if link.residual is None:
        return True
    left, right = parent["h"], child["h"]
    return left is not None and right is not None and left < right


#: The only residual condition of these tests: column h of the parent is below that of the child.
BELOW = Expression("__p1 < __c1", ("__c1", "__p1"), tree=apply("<", ColumnRef("__p1"), ColumnRef("__c1")))


def plain_key(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def scale_of(asked: Asked, rows: Sequence[Row]) -> float:
    """The size of the values, which the error of a float is relative to."""
    if asked.aggregate.argument is None:
        return 0.0
    values = [scalar(asked.aggregate.argument.sql)(row) for row in rows]
    sizes = [abs(float(value)) for value in values if isinstance(value, float | int | Decimal)]
    finite = [size for size in sizes if math.isfinite(size)]
    return sum(finite) if asked.aggregate.function in ("sum", "avg") else max([0.0, *finite]) ** 2


def is_equal(truth: tuple[Any, float], found: Any) -> bool:
    value, scale = truth
    if found == "refused" or value is None or found is None:
        return bool(found == "refused") and not fits(value) if found == "refused" else value is found
    if isinstance(value, float) or isinstance(found, float):
        value, found = float(value), float(found)
        if math.isnan(value) or math.isnan(found):
            return math.isnan(value) and math.isnan(found)
        if math.isinf(value) or math.isinf(found):
            return value == found
        return abs(value - found) <= 1e-12 * max(scale, abs(value)) + 1e-300
    return bool(value == found)


def fits(value: Any) -> bool:
    return not isinstance(value, int) or -(2**63) <= value < 2**63


# ---- random cases ----


def random_tuples(rng: np.random.Generator, size: int, ends: int, *, wild: bool = False) -> list[Row]:
    """Tuples with few, skewed keys, and NULLs everywhere; `wild` adds infinity, NaN and huge numbers."""

    def some(values: Sequence[Any], nulls: float = 0.15) -> Any:
        return None if rng.random() < nulls else values[int(rng.integers(len(values)) * rng.random())]

    floats = [1.5, -2.25, 0.1, 1e15, -1e15, 3.7, 0.0, -0.0]
    wholes = [3, -7, 11, 0, 2**31, -(2**40)]
    if wild:
        floats += [math.nan, math.inf, -math.inf, 1e300]
        wholes += [2**62, -(2**63)]
    return [
        {
            "g": some(["red", "green", "blue"]),
            "h": some([1, 2, 3, 4]),
            "k": some([10, 20, 30, 40], 0.1),
            "r": some([0.0, -0.0, math.nan, 2.5]),
            "n": some(wholes),
            "i": some([3, -7, 11, 0, 2**31 - 1]),
            "x": some(floats),
            "y": some([1.5, -0.5, 8.0, 0.25]),
            "d": some([Decimal("1.25"), Decimal("-99999999.99"), Decimal("0.01")]),
            "w": some([Decimal("1.2500"), Decimal("-9999999999999999999999.9999"), Decimal("0.0001")]),
            "s": some(["pear", "fig", "apple"]),
            "b": some([True, False]),
            "f": some([True, False]),
            "tick": int(rng.integers(-3, ends + 1)),
        }
        for _ in range(size)
    ]


def random_links(
    rng: np.random.Generator, sides: int, kinds: Sequence[JoinKind], *, residual: bool
) -> tuple[Link, ...]:
    links = []
    for child in range(1, sides):
        parent = int(rng.integers(child))
        pairs = [KeyPair(2, 2, bool(rng.random() < 0.2))]
        if rng.random() < 0.2:
            pairs.append(KeyPair(3, 3, bool(rng.random() < 0.3)))
        elif rng.random() < 0.2:
            pairs = [KeyPair(0, 0)]
        condition = BELOW if residual and rng.random() < 0.5 else None
        links.append(Link(parent, child, kinds[int(rng.integers(len(kinds)))], tuple(pairs), condition))
    return tuple(links)


def random_order(rng: np.random.Generator, links: Sequence[Link]) -> list[int]:
    """Links in a random order of elimination: children before what they hang on."""
    left, order = set(range(len(links))), []
    while left:
        free = [
            number for number in sorted(left) if not any(links[other].parent == links[number].child for other in left)
        ]
        order.append(free[int(rng.integers(len(free)))])
        left.remove(order[-1])
    return order


@cache
def own_aggregate(name: str) -> UserDefined:
    return define_aggregate(name, **DEFINITIONS[name]())


def ask_everything(case: JoinCase, rng: np.random.Generator, *, share: float = 1.0, wild: bool = False) -> None:
    """Adds one aggregate of every sort to a case, or a share of them."""
    asking = Asking(case, rng)
    sorts = [asking.count, asking.moments, asking.picks, asking.own]
    sorts += [lambda name=name: asking.carried_sum(name) for name in "nixdw"]
    sorts += [lambda name=name: asking.extreme(name) for name in "nxdsb"]
    sorts += [lambda name=name: asking.bits(name) for name in ("bit_and", "bit_or", "bit_xor")]
    if len(case.visible) > 1:
        sorts += [
            lambda pair=pair: asking.two_sided_sum(*pair) for pair in ("x*x", "i*n", "d*d", "x-x", "i+i", "d-d", "i-n")
        ]
        corners = ("x+x", "x-x", "x*x", "i+i", "i-n", "n*i", "d+d", "d*d", "d-d", "y*y")
        sorts += [lambda pair=pair: asking.corner(*pair) for pair in corners]
    for sort in sorts:
        if rng.random() < share:
            sort()


class Asking:
    """Adds aggregates to a case, of random sides and with random filters."""

    def __init__(self, case: JoinCase, rng: np.random.Generator) -> None:
        self.case, self.rng = case, rng

    def side(self) -> int:
        return int(self.rng.choice(self.case.visible))

    def filters(self) -> tuple[Expression | None, dict[int, Expression]]:
        """A random filter over one or two sides: the condition on joined tuples, and what it asks of each side."""
        chosen = sorted({self.side() for _ in range(int(self.rng.integers(0, 3)))})
        if not chosen:
            return None, {}
        names = tuple(f"s{side}.f" for side in chosen)
        return Expression(" AND ".join(names), names), {side: Expression.of_column("f") for side in chosen}

    def weights(self, conditions: dict[int, Expression]) -> tuple[int, ...]:
        return tuple(
            self.case.component(side, replace(COUNT_STAR, where=conditions.get(side)))
            for side in range(len(self.case.ranges))
        )

    def add(self, function: str, folded: Sequence[Folded], side: int, column: str | None, **more: Any) -> None:
        kind = more.pop("kind", None if column is None else KINDS.get(column.rpartition(".")[2]))
        argument = None if column is None else Expression(column)
        aggregate = Aggregate(function, argument, **more)
        self.case.asked.append(Asked(aggregate, tuple(folded), kind, (side,), f"s{side}.tick"))

    def count(self) -> None:
        where, conditions = self.filters()
        weights = self.weights(conditions)
        self.add("count", [SumOfProducts((Product(1, weights),))], 0, None, where=where)

    def carried(self, function: str, column: str, kinds: Sequence[str], **more: Any) -> None:
        side = self.side()
        where, conditions = self.filters()
        weights, folded = self.weights(conditions), []
        inner = {name: value for name, value in more.items() if name in ("own", "by")}
        for kind in kinds:
            component = Component(kind, Expression.of_column(column), where=conditions.get(side), **inner)
            folded.append(SideComponent(side, self.case.component(side, component), weights))
        if "by" in more:
            more["by"] = Expression(f"s{side}.{more['by'].sql}")
        self.add(function, folded, side, f"s{side}.{column}", where=where, **more)

    def carried_sum(self, column: str) -> None:
        average = bool(self.rng.random() < 0.5) and column != "w"
        self.carried("avg" if average else "sum", column, ("sum", "count") if average else ("sum",))

    def extreme(self, column: str) -> None:
        kind = str(self.rng.choice(["min", "max"]))
        self.carried(kind, column, (kind,))

    def moments(self) -> None:
        self.carried("var_pop", "y", ("moments",))

    def bits(self, name: str) -> None:
        self.carried(name, "i", (name,))

    def picks(self) -> None:
        kind = str(self.rng.choice(["first", "last", "min_by", "max_by"]))
        more = {"by": Expression.of_column("d")} if kind.endswith("by") else {}
        self.carried(kind, "s", (kind,), **more)

    def own(self) -> None:
        name, column = [("parity", "n"), ("farthest", "y")][int(self.rng.integers(2))]
        self.carried(name, column, (name,), own=own_aggregate(name))

    def pair(self) -> tuple[int, int]:
        left, right = self.rng.choice(self.case.visible, 2, replace=False)
        return int(left), int(right)

    def factors(self, parts: dict[int, Component], conditions: dict[int, Expression]) -> tuple[int, ...]:
        found = list(self.weights(conditions))
        for side, component in parts.items():
            found[side] = self.case.component(side, component)
        return tuple(found)

    def two_sided_sum(self, first: str, operator: str, second: str) -> None:
        left, right = self.pair()
        wanted = {left: first, right: second}

        def part(side: int, kind: str) -> Component:
            known = Expression(f"{wanted[side]} IS NOT NULL", (wanted[side],))
            return Component(kind, Expression.of_column(wanted[side]), where=known)

        def product(sign: int, *kinds: str) -> Product:
            parts = {side: part(side, kind) for side, kind in zip((left, right), kinds, strict=True)}
            return Product(sign, self.factors(parts, {}))

        if operator == "*":
            products = (product(1, "sum", "sum"),)
        else:
            products = (product(1, "sum", "count"), product(1 if operator == "+" else -1, "count", "sum"))
        folded = SumOfProducts(products, product(1, "count", "count"))
        name, kind = f"s{left}.{first} {operator} s{right}.{second}", result_kind(first, operator, second)
        self.add("sum", [folded], left, name, kind=kind)

    def corner(self, first: str, operator: str, second: str) -> None:
        left, right = self.pair()
        kind = str(self.rng.choice(["min", "max"]))

        def end(side: int, column: str) -> tuple[int, int, int]:
            low, high = (
                self.case.component(side, Component(function, Expression.of_column(column)))
                for function in ("min", "max")
            )
            return side, low, high

        where, conditions = self.filters() if len(self.case.visible) > 2 else (None, {})
        if left in conditions or right in conditions:
            where, conditions = None, {}
        folded = Corner(operator, end(left, first), end(right, second), self.weights(conditions))
        name = f"s{left}.{first} {operator} s{right}.{second}"
        self.add(kind, [folded], left, name, kind=result_kind(first, operator, second), where=where)


def result_kind(first: str, operator: str, second: str) -> DataType:
    left, right = KINDS[first], KINDS[second]
    if left.name == right.name == "decimal(10,2)":
        return DataType.parse("decimal(21,4)" if operator == "*" else "decimal(11,2)")
    # Wider than Spark's type for two of `int`, so that random numbers do not overflow.
    return DataType.parse("bigint") if left.bits and right.bits else DataType.parse("double")
