"""The cards; a new one is one file and one line here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from windloom.aggregates.aggregator import Aggregator, ListCard, NativeCard, PlannedArgument, Refuse, ValueCard
from windloom.aggregates.bits import Bits
from windloom.aggregates.buckets import Buckets
from windloom.aggregates.columns import AnyLifted, WindowValues
from windloom.aggregates.counts import CountAggregator
from windloom.aggregates.extrema import Extrema
from windloom.aggregates.float_sums import FloatSums
from windloom.aggregates.frequencies import Frequencies
from windloom.aggregates.last_ticks import LastTicks
from windloom.aggregates.moments import SecondMoments
from windloom.aggregates.picks import Picks
from windloom.aggregates.registers import Registers
from windloom.aggregates.top_frequencies import TopFrequencies
from windloom.aggregates.user_defined import UserAggregates
from windloom.aggregates.whole_sums import WholeSums
from windloom.kernels.families import Family
from windloom.model.aggregate import Aggregate, Component, declare_function
from windloom.model.types import Column, DataType

CARDS: tuple[Aggregator, ...] = (
    CountAggregator(),
    WholeSums(),
    FloatSums(),
    Extrema(),
    SecondMoments(),
    Bits(),
    Picks(),
    Frequencies(),
    Registers(),
    Buckets(),
    TopFrequencies(),
    LastTicks(),
)

#: The functions of this card are not declared here, because every loom has its own.
USER_DEFINED = UserAggregates()

#: CQL function name (and the aliases Spark knows) to the aggregate's name.
FUNCTIONS: dict[str, str] = {}

for _card in CARDS:
    for _function in _card.functions:
        declare_function(_function)
        if not _function.is_distinct:
            FUNCTIONS[_function.name] = _function.name
        FUNCTIONS |= dict.fromkeys(_function.spellings, _function.name)

_BY_KIND = {kind: [card for card in CARDS if kind in card.kinds] for card in CARDS for kind in card.kinds}

#: How lists of a kind are merged.
LIST_RULES = {card.rule.kind: card.rule for card in CARDS if isinstance(card, ListCard)}


def card_of(planned: PlannedArgument) -> Aggregator:
    """The card of a component."""
    if planned.component.own is not None:
        return USER_DEFINED
    return next(card for card in _BY_KIND[planned.component.kind] if card.keeps(planned))


# A component with the type of its argument, and the operations of its card on it.


@dataclass(frozen=True)
class PlannedComponent:
    """A component with the type of its argument, which determines how it is kept."""

    component: Component
    argument_type: DataType | None

    def __reduce__(self) -> tuple[type[PlannedComponent], tuple[Component, DataType | None]]:
        return PlannedComponent, (self.component, self.argument_type)

    # Costs are computed many times, so values that follow from the fields are computed once, and never sent anywhere.

    @cached_property
    def card(self) -> Aggregator:
        return card_of(self)

    @cached_property
    def family(self) -> Family:
        return self.card.family(self)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The native columns that Spark computes for each slice and group for this component, in order."""
        return self.card.fields(self) if isinstance(self.card, NativeCard) else ()


def lift(planned: PlannedComponent, native: list[Column]) -> AnyLifted:
    """Cells from native columns; `native` holds the component's fields in order."""
    card = planned.card
    assert isinstance(card, NativeCard), "only native partials are lifted"
    return card.lift(planned, native)


def neutral(planned: PlannedComponent, count: int) -> AnyLifted:
    """Cells that add nothing, for slices from before the component was kept."""
    return planned.card.neutral(planned, count)


def card_for(aggregate: Aggregate, argument: DataType | None) -> Aggregator:
    """The card that answers an aggregate, which is that of its first component."""
    return PlannedComponent(aggregate.components[0], argument).card


def lower(aggregate: Aggregate, argument: DataType | None, combined: list[WindowValues], refuse: Refuse) -> pa.Array:
    """The column of answers; `combined` holds the aggregate's components in order."""
    card = card_for(aggregate, argument)
    assert isinstance(card, ValueCard), "lists are asked, not lowered"
    return card.lower(aggregate, argument, combined, refuse)
