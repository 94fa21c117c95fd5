"""Aggregates as values: a function of a window's tuples, the components that answer it, and what users define.

An aggregate is lifted into components (one value per slice and group), components are combined over slices, and the
combined components are lowered to the answer. Queries that need the same component of the same expression share it:
AVG(x) costs nothing in addition to SUM(x) and COUNT(x). The functions are not listed here: the aggregators of
`windloom.aggregates` declare them, each with everything about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import Any

from windloom.errors import WindloomError
from windloom.model.expression import Expression
from windloom.model.types import DataType, TypeKind


class Property(Flag):
    """Algebraic properties: a combine operation has some, an evaluation technique needs some."""

    NONE = 0
    ASSOCIATIVE = auto()
    COMMUTATIVE = auto()
    INVERTIBLE = auto()
    SELECTIVE = auto()  # the result is one of its two inputs
    NEARLY_INVERTIBLE = auto()  # up to an error that must be bounded
    LISTS = auto()  # values are lists of variable size, which are added entry by entry


@dataclass(frozen=True, slots=True)
class UserDefined:
    """An aggregate that a user wrote in Python; `aggregates.define` makes and checks it.

    A value is a scalar, or `value_class` of the `fields` (name, type). Two with the same name and `digest` are equal.
    The digest identifies the code of the functions, so copies of one definition, as on executors, are the same
    aggregate.
    """

    name: str
    argument: DataType  # what `lift` takes; other numbers are cast to it
    fields: tuple[tuple[str, DataType], ...]
    result: DataType
    has: Property
    digest: str
    lift: Callable[..., Any] = field(compare=False, repr=False)
    combine: Callable[..., Any] = field(compare=False, repr=False)
    lower: Callable[..., Any] = field(compare=False, repr=False)
    neutral: Any = field(compare=False)
    inverse: Callable[..., Any] | None = field(compare=False, default=None, repr=False)
    value_class: type[Any] | None = field(compare=False, default=None, repr=False)

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def layout(self) -> str:
        """The fields of its values, as text."""
        return ", ".join(f"{name} {kind}" for name, kind in self.fields)

    def text(self, aggregate: Aggregate) -> str:
        return f"{self.name}({aggregate.argument})"

    def type_of(self, aggregate: Aggregate, argument_type: DataType) -> DataType:
        is_whole = self.argument.kind is TypeKind.INTEGER
        if argument_type.kind is TypeKind.INTEGER or (argument_type.is_numeric and not is_whole):
            return self.result
        wanted = "a whole number" if is_whole else "a number"
        raise WindloomError(
            f"cannot take '{aggregate}'",
            f"'{aggregate.argument}' is of type {argument_type}, and '{self.name}' was defined for {wanted}",
            f"cast it: {self.name}(cast({aggregate.argument} AS {self.argument}))",
        )


@dataclass(frozen=True, slots=True)
class Constant:
    """The number that a function takes besides its argument: the k of TOP(k, x), the p of QUANTILE(x, p)."""

    letter: str
    goes_first: bool
    example: str
    check: Callable[[float], str | None]  # what is wrong with a number, if anything


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """What an aggregator declares about a function: the kinds of its components, its type, and its spelling in CQL.

    `spellings` maps further names to the constants that they imply: `median` is `quantile` with 0.5.
    """

    name: str
    kinds: tuple[str, ...]
    type_of: Callable[[Aggregate, DataType], DataType]
    spellings: dict[str, tuple[float, ...]] = field(default_factory=dict)
    constant: Constant | None = None
    arguments: int = 1  # expressions on tuples
    pairs_numbers: bool = False  # both of its arguments are numbers
    picks_nulls: bool = False  # takes IGNORE NULLS and RESPECT NULLS
    is_distinct: bool = False  # spelled count(DISTINCT x), without a name of its own
    is_approximate: bool = False  # the definition does not determine the answer completely

    def text(self, aggregate: Aggregate) -> str:
        """Return the aggregate as CQL spells it, without FILTER."""
        return self.spelled(self.name, "*" if aggregate.argument is None else aggregate.arguments, aggregate.parameters)

    def spelled(self, name: str, arguments: str, parameters: tuple[float, ...]) -> str:
        if self.is_distinct:
            return f"count(DISTINCT {arguments})"
        if self.constant is None or not parameters:
            return f"{name}({arguments})"
        numbers = ", ".join(map(str, parameters))
        return f"{name}({numbers}, {arguments})" if self.constant.goes_first else f"{name}({arguments}, {numbers})"


_FUNCTIONS: dict[str, Function] = {}


def declare_function(function: Function) -> None:
    """Register a function under its name; aggregators call this."""
    _FUNCTIONS[function.name] = function


def find_function(name: str) -> Function:
    """Return the function that an aggregator declared; names are those of aggregates, not their other spellings."""
    try:
        return _FUNCTIONS[name]
    except KeyError:
        raise LookupError(f"no aggregator declares '{name}'; windloom.aggregates holds the aggregators") from None


@dataclass(frozen=True, slots=True)
class Component:
    """One summary kept per slice and group, shared by every aggregate that needs it."""

    kind: str
    argument: Expression | None = None
    by: Expression | None = None  # the values that MIN_BY and MAX_BY compare
    where: Expression | None = None  # the condition that tuples must satisfy to count
    own: UserDefined | None = None  # set if a user defined its kind
    others: tuple[Expression, ...] = ()  # what else is taken from the tuple that is picked

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that are evaluated on the tuples of the stream."""
        read = (self.argument, *self.others, self.by, self.where)
        return tuple(expression for expression in read if expression is not None)

    def __str__(self) -> str:
        picked = f"({', '.join(map(str, (self.argument, *self.others)))})" if self.others else self.argument
        arguments = ", ".join(map(str, filter(None, (picked, self.by))))
        call = f"{self.kind}({arguments})" if arguments else self.kind
        return call if self.where is None else f"{call} FILTER (WHERE {self.where})"


#: What functions are over no tuples; all others are NULL.
OF_NOTHING: dict[str, int | list[Any]] = {
    **dict.fromkeys(("count", "count_distinct", "approx_count_distinct"), 0),
    "collect_list": [],
    "collect_set": [],
}

#: Counts tuples. Every set has it: it shows which windows have a row, and it counts late tuples.
COUNT_STAR = Component("count(*)")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function over the tuples of a window and group; `argument` is None for COUNT(*).

    `parameters` are the constants of a function: the k of TOP(k, x), the p of QUANTILE(x, p).
    """

    function: str
    argument: Expression | None = None
    by: Expression | None = None  # the second argument of MIN_BY and MAX_BY
    where: Expression | None = None  # FILTER (WHERE …)
    parameters: tuple[float, ...] = ()
    own: UserDefined | None = None
    picked: tuple[Expression, ...] = ()  # all that its query takes from the tuple that it picks; () if only `argument`

    def __str__(self) -> str:
        call = self.declared.text(self)
        return call if self.where is None else f"{call} FILTER (WHERE {self.where})"

    @property
    def declared(self) -> Function | UserDefined:
        """The declaration of its function."""
        return find_function(self.function) if self.own is None else self.own

    @property
    def arguments(self) -> str:
        return ", ".join(map(str, filter(None, (self.argument, self.by))))

    @property
    def is_approximate(self) -> bool:
        return isinstance(self.declared, Function) and self.declared.is_approximate

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions that are evaluated on the tuples of the stream."""
        return tuple(expression for expression in (self.argument, self.by, self.where) if expression is not None)

    @property
    def components(self) -> tuple[Component, ...]:
        if self.argument is None:
            return (Component(COUNT_STAR.kind, where=self.where),)
        first, *others = self.picked or (self.argument,)
        return tuple(
            Component(kind, first, self.by, self.where, self.own, tuple(others)) for kind in self.declared.kinds
        )

    def result_type(self, argument_type: DataType | None) -> DataType:
        """Return Spark's own result type; refuse arguments Spark would not aggregate meaningfully."""
        if argument_type is None and self.function != "count":
            raise WindloomError(f"'{self}' needs an argument", hint=f"for example {self.function}(price)")
        return self.declared.type_of(self, argument_type or DataType.parse("void"))

    def check_by(self, by_type: DataType) -> None:
        """Refuse a type that the second argument cannot have: for MIN_BY and MAX_BY, one without an order."""
        if isinstance(self.declared, Function) and self.declared.pairs_numbers:
            self.check_number(by_type, self.by)
        else:
            self.check_order(self.by, by_type)

    def check_where(self, where_type: DataType) -> None:
        """Refuse a FILTER that is not a condition; NULL is a condition that is never satisfied."""
        if where_type.kind not in (TypeKind.BOOLEAN, TypeKind.NULL):
            raise WindloomError(
                f"the FILTER condition '{self.where}' is not a condition",
                f"it is of type {where_type}",
                "compare it with something",
            )

    def check_number(self, argument_type: DataType, argument: Expression | None = None) -> None:
        """Refuse an argument, the first if none is given, that is not a number."""
        if argument_type.is_numeric:
            return
        argument = self.argument if argument is None else argument
        cast, spelled = f"cast({argument} AS double)", self.function + "({})"
        if self.by is not None:
            spelled = "{}"
        elif isinstance(self.declared, Function):
            # The aggregate of the cast, in as few words as CQL has for it.
            spellings = self.declared.spellings.items()
            short = next((name for name, implied in spellings if implied and implied == self.parameters), None)
            spelled = f"{short}({{}})" if short else self.declared.spelled(self.function, "{}", self.parameters)
        raise WindloomError(
            f"cannot take '{self}'",
            f"'{argument}' is of type {argument_type}, which is not a number",
            f"use a numeric column, or cast it: {spelled.format(cast)}",
        )

    def check_order(self, expression: Expression | None, kind: DataType) -> None:
        """Refuse an expression whose values have no order."""
        if not kind.is_ordered:
            raise WindloomError(
                f"cannot take '{self}'",
                f"'{expression}' is of type {kind}, which has no order",
                "use a number, string, date, timestamp or boolean",
            )


# The approximate aggregates: how coarse their summaries of a slice are, and the resulting error of an answer.
#
# | aggregate             | a slice keeps                                         | an answer is                      |
# |-----------------------|-------------------------------------------------------|-----------------------------------|
# | APPROX_COUNT_DISTINCT | the largest rank of a hash in each of 4,096 registers | off by 1.6 % (one standard error) |
# | APPROX_QUANTILE       | how many values are in each bucket; each is 2 % wider | within 1 % of the value there     |
# | APPROX_TOP            | how often its 1,000 most frequent values occur        | too low by 0.2 % of all, at most  |
#
# They are HyperLogLog, DDSketch, and the lists of Misra and Gries. The first two depend only on the values of the
# window, however it is divided into slices, rounds and buckets.

#: HyperLogLog: registers as a power of two; the standard error is 1.04 / √registers.
REGISTER_BITS = 12
REGISTERS = 1 << REGISTER_BITS
STANDARD_ERROR = 1.04 / math.sqrt(REGISTERS)
#: The bits of a hash in which ranks are counted.
RANK_BITS = 64 - REGISTER_BITS
#: The bits that hold a rank if it shares a number with its register.
PACKED_RANK_BITS = 8

#: DDSketch: bucket i holds GROWTH ** (i - 1) < |x| <= GROWTH ** i.
RELATIVE_ERROR = 0.01
GROWTH = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
#: Added to the number of a bucket, so that the sum has the sign of the values; then infinities, then NaN.
FIRST_BUCKET, INFINITE_BUCKET, NAN_BUCKET = 1_000_000, 2_000_000, 3_000_000

#: Entries that a slice keeps for APPROX_TOP; during a merge, a list may grow to twice this size.
MOST_ENTRIES = 1_000
#: The largest error, as a share of the values in a window: half from what slices leave out, half from merging.
TOP_ERROR = 2 / (MOST_ENTRIES + 1)
