"""The aggregators, of which a new one is one file and one line here, and the component that each of them works on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from windloom.aggregates.aggregator import Aggregator, ListAggregator, NativeAggregator, Refuse, ValueAggregator
from windloom.aggregates.bits import Bits
from windloom.aggregates.buckets import Buckets
from windloom.aggregates.columns import AnyLifted, WindowValues
from windloom.aggregates.comoments import PairedMoments
from windloom.aggregates.counts import CountAggregator
from windloom.aggregates.extrema import Extrema
from windloom.aggregates.float_sums import FloatSums
from windloom.aggregates.frequencies import Frequencies
from windloom.aggregates.higher_moments import HigherMoments
from windloom.aggregates.last_ticks import LastTicks
from windloom.aggregates.moments import SecondMoments
from windloom.aggregates.picks import Picks
from windloom.aggregates.registers import Registers
from windloom.aggregates.sequences import Sequences
from windloom.aggregates.top_frequencies import TopFrequencies
from windloom.aggregates.user_defined import UserAggregates
from windloom.aggregates.whole_sums import WholeSums
from windloom.kernels.families import Family
from windloom.model.aggregate import Aggregate, Component, declare_function
from windloom.model.types import Column, DataType

AGGREGATORS: tuple[Aggregator, ...] = (
    CountAggregator(),
    WholeSums(),
    FloatSums(),
    Extrema(),
    SecondMoments(),
    HigherMoments(),
    PairedMoments(),
    Bits(),
    Picks(),
    Frequencies(),
    Registers(),
    Sequences(),
    Buckets(),
    TopFrequencies(),
    LastTicks(),
)

#: The functions of this aggregator are not declared here, because every loom has its own.
USER_DEFINED = UserAggregates()

#: CQL function name (and the aliases Spark knows) to the aggregate's name.
FUNCTIONS: dict[str, str] = {}

for _aggregator in AGGREGATORS:
    for _function in _aggregator.functions:
        declare_function(_function)
        if not _function.is_distinct:
            FUNCTIONS[_function.name] = _function.name
        FUNCTIONS |= dict.fromkeys(_function.spellings, _function.name)

_BY_KIND = {
    kind: [aggregator for aggregator in AGGREGATORS if kind in aggregator.kinds]
    for aggregator in AGGREGATORS
    for kind in aggregator.kinds
}

#: How lists of a kind are merged.
LIST_RULES = {
    aggregator.rule.kind: aggregator.rule for aggregator in AGGREGATORS if isinstance(aggregator, ListAggregator)
}


@dataclass(frozen=True)
class PlannedComponent:
    """A component with the type of its argument, which determines how it is kept."""

    component: Component
    argument_type: DataType | None
    other_types: tuple[DataType, ...] = ()  # of `component.others`

    def __reduce__(self) -> tuple[type[PlannedComponent], tuple[Component, DataType | None, tuple[DataType, ...]]]:
        return PlannedComponent, (self.component, self.argument_type, self.other_types)

    def type_for(self, aggregate: Aggregate) -> DataType | None:
        """Return the type of the argument of an aggregate that it answers."""
        if aggregate.argument in self.component.others:
            return self.other_types[self.component.others.index(aggregate.argument)]
        return self.argument_type

    # Costs are computed many times, so values that follow from the fields are computed once, and never sent anywhere.

    @cached_property
    def aggregator(self) -> Aggregator:
        if self.component.own is not None:
            return USER_DEFINED
        return next(aggregator for aggregator in _BY_KIND[self.component.kind] if aggregator.keeps(self))

    @cached_property
    def family(self) -> Family:
        return self.aggregator.family(self)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The native columns that Spark computes for each slice and group for this component, in order."""
        return self.aggregator.fields(self) if isinstance(self.aggregator, NativeAggregator) else ()


def lift(planned: PlannedComponent, native: list[Column]) -> AnyLifted:
    """Return cells from native columns; `native` holds the component's fields in order."""
    aggregator = planned.aggregator
    assert isinstance(aggregator, NativeAggregator), "only native partials are lifted"
    return aggregator.lift(planned, native)


def neutral(planned: PlannedComponent, count: int) -> AnyLifted:
    """Return cells that add nothing, for slices from before the component was kept."""
    return planned.aggregator.neutral(planned, count)


def aggregator_for(aggregate: Aggregate, argument: DataType | None) -> Aggregator:
    """Return the aggregator that answers an aggregate, which is that of its first component."""
    return PlannedComponent(aggregate.components[0], argument).aggregator


def lower(aggregate: Aggregate, argument: DataType | None, combined: list[WindowValues], refuse: Refuse) -> pa.Array:
    """Return the column of answers; `combined` holds the aggregate's components in order."""
    aggregator = aggregator_for(aggregate, argument)
    assert isinstance(aggregator, ValueAggregator), "lists answer questions and are not lowered"
    return aggregator.lower(aggregate, argument, combined, refuse)
