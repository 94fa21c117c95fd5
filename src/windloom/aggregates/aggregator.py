"""The base classes of aggregators, each of which holds everything about one family of components.

A component passes through four stages. Its cells are made from tuples, by compiled kernels (`woven_sql`, `weave`) or
by Spark's own aggregation (`inputs`, `fields`, `native_sql`, `lift`). Kernels combine them (`family`), the combined
values become the column of an answer (`lower`), and verification computes the same with Spark alone (`truth_sql`,
`scale_sql`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.aggregates.columns import AnyLifted, ComponentColumns, ListColumns, ListRule, WindowValues, no_lists
from windloom.kernels.families import AddInt, Family
from windloom.kernels.lists.lists import Question
from windloom.kernels.locate import WindowArrays
from windloom.kernels.tuples.set_tuples import ComponentInput, SetTuples, list_values, most_frequent
from windloom.model.aggregate import Aggregate, Component, Function
from windloom.model.types import DOUBLE, Column, DataType, TypeKind, arrow_type


@dataclass(frozen=True, slots=True)
class ListWindows:
    """The context of a question: lists with this many `codes`, `rows` windows, and the `starts` of the cells."""

    codes: int
    rows: int
    starts: NDArray[np.int64]
    windows: WindowArrays


#: Called with the first row whose value does not fit its type, or is too long a list; raises an error that names query,
#: window and group.
Refuse = Callable[[int, str], None]

#: The combined components of an aggregate, in order.
Parts = list[WindowValues]

#: For exact functions, which have no error.
EXACT = "CAST(NULL AS DOUBLE)"


class PlannedArgument(Protocol):
    """A component with the type of its argument, which determines how it is kept."""

    @property
    def component(self) -> Component: ...

    @property
    def argument_type(self) -> DataType | None: ...


class Aggregator(ABC):
    """One family of components. `kinds` are the components it keeps, `functions` the functions it declares."""

    kinds: tuple[str, ...] = ()
    functions: tuple[Function, ...] = ()
    #: Whether Spark's own aggregation can make its partials, in addition to the kernels.
    is_native = False
    #: The kinds that read the event time of tuples.
    by_tick: tuple[str, ...] = ()
    #: The types of arguments for which `woven_arrow` gives the same as `woven_sql`.
    woven_without_spark: tuple[TypeKind, ...] = ()
    #: How values are combined, for aggregators whose components all have one family.
    combined_by: Family

    def keeps(self, planned: PlannedArgument) -> bool:
        """Return whether this is the aggregator of a component of one of its kinds."""
        return True

    def family(self, planned: PlannedArgument) -> Family:
        """Return how the values of a component are combined."""
        return self.combined_by

    def limbs(self, planned: PlannedArgument) -> int:
        """Return the number of columns of the family that are combined independently of each other."""
        return 1

    def woven_sql(self, argument: str, kind: DataType | None) -> str:
        """Return the SQL that the woven intake projects instead of the argument, which has this type."""
        return argument

    def woven_arrow(self, argument: pa.Array) -> pa.Array:
        """Return the values that `woven_sql` projects, made without Spark from the values of the argument."""
        raise NotImplementedError

    @abstractmethod
    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> AnyLifted:
        """Return cells made from tuples, equal to those of `lift`."""

    @abstractmethod
    def neutral(self, planned: PlannedArgument, count: int) -> AnyLifted:
        """Return cells that add nothing, for slices from before the component was kept."""

    def truth_sql(self, aggregate: Aggregate, tick: str) -> str:
        """Return the aggregate as a Spark user writes it, which answers are verified against."""
        return f"{aggregate.function}({aggregate.arguments}){filter_sql(aggregate)}"

    def scale_sql(self, aggregate: Aggregate) -> str:
        """Return the quantity to which the error of a floating-point answer is relative."""
        return EXACT


class ValueAggregator(Aggregator):
    """An aggregator of components whose cells hold values in a few columns."""

    #: Whether cells also count their values, because a window without a value is NULL.
    counts_values = True

    def neutral(self, planned: PlannedArgument, count: int) -> AnyLifted:
        limbs = tuple(self.family(planned).neutral(count) for _ in range(self.limbs(planned)))
        return ComponentColumns(limbs, AddInt(np.zeros(count, np.int64)) if self.counts_values else None)

    @abstractmethod
    def lower(self, aggregate: Aggregate, argument: DataType | None, combined: Parts, refuse: Refuse) -> pa.Array:
        """Return the column of answers; `combined` holds the aggregate's components in order."""


class NativeAggregator(ValueAggregator):
    """An aggregator of components whose partials Spark's own aggregation can also make."""

    is_native = True

    def inputs(self, component: Component, tick: str) -> tuple[str, ...]:
        """Return the SQL of the values that are read from a tuple; `tick` is the SQL of its event time."""
        return () if component.argument is None else (component.argument.sql,)

    def fields(self, planned: PlannedArgument) -> tuple[str, ...]:
        """Return the native columns that Spark computes for each slice and group, in order."""
        return ("value",)

    def native_sql(self, planned: PlannedArgument, inputs: Sequence[str]) -> tuple[str, ...]:
        """Return an aggregate in Spark SQL for each field; `inputs` are the columns of values read from a tuple."""
        return (f"{planned.component.kind}({inputs[0]})",)

    @abstractmethod
    def lift(self, planned: PlannedArgument, native: list[Column]) -> AnyLifted:
        """Return cells from native columns, one for each field."""


class ListAggregator(Aggregator):
    """An aggregator of components whose cells are lists of (value, count) in order of value."""

    rule: ListRule
    is_ranked = True  # whether lists are woven from the ranks of values
    value_type: pa.DataType | None = None  # of the values in the lists, if not that of the argument

    def weave(self, planned: PlannedArgument, set_tuples: SetTuples, read: ComponentInput) -> ListColumns:
        ranked = set_tuples.argument(read).ranked
        lists = list_values(set_tuples, read, ranked.ranks, len(ranked.dictionary))
        if self.rule.most is not None:
            lists = most_frequent(lists, self.rule.most)
        return ListColumns(self.rule, lists, ranked.dictionary).without_unused()

    def neutral(self, planned: PlannedArgument, count: int) -> ListColumns:
        value_type = self.value_type
        if value_type is None:
            assert planned.argument_type is not None
            value_type = arrow_type(planned.argument_type)
        return no_lists(self.rule, value_type, count)

    @abstractmethod
    def question(self, aggregate: Aggregate, context: ListWindows) -> Question:
        """Return the question that the kernels answer from the lists."""

    @abstractmethod
    def answer(self, aggregate: Aggregate, question: Any, listed: ListColumns, rows: slice) -> pa.Array:
        """Return the column of answers for some rows, from the answered question."""

    def is_within(self, aggregate: Aggregate, truth: Any, answer: Any) -> bool:
        """Return whether an approximate answer is within its bound; `truth` is the result of `truth_sql`."""
        return bool(truth == answer)


def double_type(aggregate: Aggregate, argument: DataType) -> DataType:
    """Return the result type of functions whose results are doubles for numbers of any type."""
    aggregate.check_number(argument)
    return DOUBLE


def filter_sql(aggregate: Aggregate) -> str:
    """Return Spark's FILTER, which unlike its WHERE does not accept a bare NULL as a condition."""
    return "" if aggregate.where is None else f" FILTER (WHERE CAST({aggregate.where.sql} AS BOOLEAN))"


def argument_sql(aggregate: Aggregate) -> str:
    """Return the argument, or NULL if the filter is not satisfied."""
    assert aggregate.argument is not None
    if aggregate.where is None:
        return aggregate.argument.sql
    return f"CASE WHEN CAST({aggregate.where.sql} AS BOOLEAN) THEN {aggregate.argument.sql} END"


def size_sql(aggregate: Aggregate) -> str:
    """Return the magnitude of the argument as a double, or NULL if the filter is not satisfied."""
    return f"abs(CAST({argument_sql(aggregate)} AS DOUBLE))"
