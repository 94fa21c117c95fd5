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
    FREQUENCIES = "frequencies"
    TOP_FREQUENCIES = "top_frequencies"  # of the most frequent values only
    BUCKETS = "buckets"  # frequencies of values rounded to buckets
    REGISTERS = "registers"


@dataclass(frozen=True, slots=True)
class Component:
    """One summary kept per slice and group, shared by every aggregate that needs it."""

    kind: ComponentKind
    argument: Expression | None = None

    def __str__(self) -> str:
        return str(self.kind) if self.argument is None else f"{self.kind}({self.argument})"

    def family(self, argument_type: DataType | None) -> Family:
        match self.kind:
            case ComponentKind.COUNT_STAR | ComponentKind.COUNT:
                return Family.ADD_INT
            case ComponentKind.MIN | ComponentKind.MAX:
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
    **HOLISTIC_FUNCTIONS,
}


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function over the tuples of a window and group; `argument` is None for COUNT(*).

    `parameters` are the constants of a holistic function: the k of TOP(k, x), the p of QUANTILE(x, p).
    """

    function: str
    argument: Expression | None = None
    parameters: tuple[float, ...] = ()

    def __str__(self) -> str:
        if self.function in COMPONENT_OF:
            return holistic_text(self.function, self.argument, self.parameters)
        return f"{self.function}({'*' if self.argument is None else self.argument})"

    @property
    def components(self) -> tuple[Component, ...]:
        argument = self.argument
        match self.function:
            case "count" if argument is None:
                return (COUNT_STAR,)
            case "count":
                return (Component(ComponentKind.COUNT, argument),)
            case "sum":
                return (Component(ComponentKind.SUM, argument),)
            case "avg":
                return (Component(ComponentKind.SUM, argument), Component(ComponentKind.COUNT, argument))
            case "min":
                return (Component(ComponentKind.MIN, argument),)
            case "max":
                return (Component(ComponentKind.MAX, argument),)
            case holistic if holistic in COMPONENT_OF:
                return (Component(ComponentKind(COMPONENT_OF[holistic]), argument),)
            case _:
                return (Component(ComponentKind.MOMENTS, argument),)

    def result_type(self, argument_type: DataType | None) -> DataType:
        """Spark's own result type; refuses arguments Spark would not aggregate meaningfully."""
        if self.function == "count":
            return BIGINT
        if argument_type is None:
            raise WindloomError(f"'{self}' needs an argument", hint=f"for example {self.function}(price)")
        if self.function in COMPONENT_OF:
            return holistic_type(self.function, str(self), self.argument, argument_type)
        if self.function in ("min", "max"):
            if not argument_type.is_ordered:
                raise WindloomError(
                    f"cannot take '{self}'",
                    f"'{self.argument}' is of type {argument_type}, which has no order",
                    "use a number, string, date, timestamp or boolean",
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


def _decimal_result(function: str, argument: DataType) -> DataType:
    """SUM adds 10 digits, AVG adds 4 digits behind the point; both stop at 38 (Spark's rules)."""
    extra_digits, extra_scale = (10, 0) if function == "sum" else (4, 4)
    precision = min(38, argument.precision + extra_digits)
    scale = min(38, argument.scale + extra_scale)
    return DataType.parse(f"decimal({precision},{scale})")
