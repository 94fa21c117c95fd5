"""Aggregates as data: which components they are made of, what those allow, which type they return.

An aggregate is lifted into components (one value a slice and group), components are combined over slices by an
operation of some `Family`, and the combined components are lowered to the answer. Queries that need the same
component of the same expression share it: AVG(x) costs nothing beside SUM(x) and COUNT(x).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, StrEnum, auto

from windloom.errors import WindloomError
from windloom.model.expression import Expression
from windloom.model.holistic import COMPONENT_OF, HOLISTIC_FUNCTIONS, holistic_text, holistic_type
from windloom.model.types import BIGINT, DOUBLE, DataType, TypeKind


class Needs(Flag):
    """Algebraic properties: a combine operation has some, an evaluation technique needs some."""

    NONE = 0
    ASSOCIATIVE = auto()
    COMMUTATIVE = auto()
    INVERTIBLE = auto()
    SELECTIVE = auto()  # the result is one of its two inputs
    NEARLY_INVERTIBLE = auto()  # up to an error that can be bounded, and must be
    LISTS = auto()  # values are lists of no fixed size, which are added up entry by entry


class Family(StrEnum):
    """The combine operations the kernels know. Each component's values are columns of one family."""

    ADD_INT = "add_int"  # 64-bit integers; exact
    ADD_FLOAT = "add_float"  # double-double pairs (high, low)
    MAX_INT = "max_int"  # order-preserving 64-bit keys; MIN uses the reversed order
    MOMENTS = "moments"  # (count, mean, sum of squared deviations), merged as Chan et al. do
    FREQUENCIES = "frequencies"  # lists of (value, how often)
    REGISTERS = "registers"  # lists of (register, largest rank): HyperLogLog

    @property
    def has(self) -> Needs:
        both = Needs.ASSOCIATIVE | Needs.COMMUTATIVE
        if self is Family.ADD_INT:
            return both | Needs.INVERTIBLE
        if self is Family.MAX_INT:
            return both | Needs.SELECTIVE
        if self is Family.ADD_FLOAT:
            # Subtracting floats loses what a passing spike has absorbed: only who watches for that may do it.
            return both | Needs.NEARLY_INVERTIBLE
        if self.is_list:
            return Needs.LISTS
        return both

    @property
    def is_list(self) -> bool:
        """A cell holds a list, and not a value in each of a few columns."""
        return self in (Family.FREQUENCIES, Family.REGISTERS)


class ComponentKind(StrEnum):
    COUNT_STAR = "count(*)"
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MOMENTS = "moments"
    MIN_BY = "min_by"
    MAX_BY = "max_by"
    FIRST = "first"  # MIN_BY event time
    LAST = "last"
    FREQUENCIES = "frequencies"
    TOP_FREQUENCIES = "top_frequencies"  # of the most frequent values only
    BUCKETS = "buckets"  # frequencies of values rounded to buckets
    REGISTERS = "registers"

    @property
    def is_pick(self) -> bool:
        """Keeps the argument of one tuple, picked by the order of something else; the argument decides ties."""
        return self in (ComponentKind.MIN_BY, ComponentKind.MAX_BY, ComponentKind.FIRST, ComponentKind.LAST)

    @property
    def is_lowest(self) -> bool:
        """Keeps what is lowest, in a family that keeps what is highest."""
        return self in (ComponentKind.MIN, ComponentKind.MIN_BY, ComponentKind.FIRST)


@dataclass(frozen=True, slots=True)
class Component:
    """One summary kept per slice and group, shared by every aggregate that needs it."""

    kind: ComponentKind
    argument: Expression | None = None
    by: Expression | None = None  # what MIN_BY and MAX_BY look at
    where: Expression | None = None  # the condition that tuples must satisfy to count

    def __str__(self) -> str:
        call = str(self.kind) if self.argument is None else f"{self.kind}({_listed(self.argument, self.by)})"
        return _filtered(call, self.where)

    def family(self, argument_type: DataType | None) -> Family:
        match self.kind:
            case ComponentKind.COUNT_STAR | ComponentKind.COUNT:
                return Family.ADD_INT
            case ComponentKind.MIN | ComponentKind.MAX:
                return Family.MAX_INT
            case ComponentKind.MIN_BY | ComponentKind.MAX_BY | ComponentKind.FIRST | ComponentKind.LAST:
                return Family.MAX_INT
            case ComponentKind.MOMENTS:
                return Family.MOMENTS
            case ComponentKind.FREQUENCIES | ComponentKind.TOP_FREQUENCIES | ComponentKind.BUCKETS:
                return Family.FREQUENCIES
            case ComponentKind.REGISTERS:
                return Family.REGISTERS
            case ComponentKind.SUM:
                is_float = argument_type is not None and argument_type.kind is TypeKind.FLOAT
                return Family.ADD_FLOAT if is_float else Family.ADD_INT


#: Counts tuples; part of every set of partials: it tells which windows have a row, and counts late tuples.
COUNT_STAR = Component(ComponentKind.COUNT_STAR)

#: Functions with the name of their component, which picks one tuple: they take values of any ordered type.
_PICK_FUNCTIONS = tuple(kind.value for kind in ComponentKind if kind.is_pick)
_MOMENT_FUNCTIONS = ("var_pop", "var_samp", "stddev_pop", "stddev_samp")

#: CQL function name (and the aliases Spark knows) to the aggregate's name.
FUNCTIONS: dict[str, str] = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "var_pop": "var_pop",
    "var_samp": "var_samp",
    "variance": "var_samp",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "bool_and": "bool_and",
    "every": "bool_and",
    "bool_or": "bool_or",
    "some": "bool_or",
    "any": "bool_or",
    "min_by": "min_by",
    "max_by": "max_by",
    "first": "first",
    "first_value": "first",
    "last": "last",
    "last_value": "last",
    **HOLISTIC_FUNCTIONS,
}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function over the tuples of a window and group; `argument` is None for COUNT(*).

    `parameters` are the constants of a holistic function: the k of TOP(k, x), the p of QUANTILE(x, p).
    """

    function: str
    argument: Expression | None = None
    by: Expression | None = None  # the second argument of MIN_BY and MAX_BY
    where: Expression | None = None  # FILTER (WHERE …)
    parameters: tuple[float, ...] = ()

    def __str__(self) -> str:
        if self.function in COMPONENT_OF:
            call = holistic_text(self.function, self.argument, self.parameters)
        else:
            call = f"{self.function}({'*' if self.argument is None else _listed(self.argument, self.by)})"
        return _filtered(call, self.where)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What is evaluated on the tuples of the stream."""
        return tuple(one for one in (self.argument, self.by, self.where) if one is not None)

    @property
    def components(self) -> tuple[Component, ...]:
        return tuple(Component(kind, self.argument, self.by, self.where) for kind in self._kinds)

    @property
    def _kinds(self) -> tuple[ComponentKind, ...]:
        match self.function:
            case "count" if self.argument is None:
                return (ComponentKind.COUNT_STAR,)
            case "avg":
                return ComponentKind.SUM, ComponentKind.COUNT
            case "bool_and":
                return (ComponentKind.MIN,)
            case "bool_or":
                return (ComponentKind.MAX,)
            case function if function in COMPONENT_OF:
                return (ComponentKind(COMPONENT_OF[function]),)
            case function if function in _MOMENT_FUNCTIONS:
                return (ComponentKind.MOMENTS,)
            case function:
                return (ComponentKind(function),)

    def result_type(self, argument_type: DataType | None) -> DataType:
        """Spark's own result type; refuses arguments Spark would not aggregate meaningfully."""
        if self.function == "count":
            return BIGINT
        if argument_type is None:
            raise WindloomError(f"'{self}' needs an argument", hint=f"for example {self.function}(price)")
        if self.function in COMPONENT_OF:
            return holistic_type(self.function, str(self), self.argument, argument_type)
        if self.function in ("min", "max", *_PICK_FUNCTIONS):
            self._check_order(self.argument, argument_type)
            return argument_type
        if self.function in ("bool_and", "bool_or"):
            if argument_type.kind is not TypeKind.BOOLEAN:
                raise WindloomError(
                    f"cannot take '{self}'",
                    f"'{self.argument}' is of type {argument_type}, which is not a boolean",
                    f"compare it with something, for example {self.function}({self.argument} IS NOT NULL)",
                )
            return argument_type
        if not argument_type.is_numeric:
            raise WindloomError(
                f"cannot take '{self}'",
                f"'{self.argument}' is of type {argument_type}, which is not a number",
                f"use a numeric column, or cast it: {self.function}(cast({self.argument} AS double))",
            )
        if self.function in _MOMENT_FUNCTIONS or argument_type.kind is TypeKind.FLOAT:
            return DOUBLE
        if argument_type.kind is TypeKind.INTEGER:
            return BIGINT if self.function == "sum" else DOUBLE
        return _decimal_result(self.function, argument_type)

    def check_by(self, by_type: DataType) -> None:
        """Refuse what MIN_BY and MAX_BY cannot look at."""
        self._check_order(self.by, by_type)

    def check_where(self, where_type: DataType) -> None:
        """Refuse a FILTER that is no condition; NULL is one that is never satisfied."""
        if where_type.kind not in (TypeKind.BOOLEAN, TypeKind.NULL):
            raise WindloomError(
                f"the FILTER condition '{self.where}' is not a condition",
                f"it is of type {where_type}",
                "compare it with something",
            )

    def _check_order(self, expression: Expression | None, kind: DataType) -> None:
        if not kind.is_ordered:
            raise WindloomError(
                f"cannot take '{self}'",
                f"'{expression}' is of type {kind}, which has no order",
                "use a number, string, date, timestamp or boolean",
            )


def _listed(argument: Expression, by: Expression | None) -> str:
    return str(argument) if by is None else f"{argument}, {by}"


def _filtered(call: str, where: Expression | None) -> str:
    return call if where is None else f"{call} FILTER (WHERE {where})"


def _decimal_result(function: str, argument: DataType) -> DataType:
    """SUM adds 10 digits, AVG adds 4 digits behind the point; both stop at 38 (Spark's rules)."""
    extra_digits, extra_scale = (10, 0) if function == "sum" else (4, 4)
    precision = min(38, argument.precision + extra_digits)
    scale = min(38, argument.scale + extra_scale)
    return DataType.parse(f"decimal({precision},{scale})")
