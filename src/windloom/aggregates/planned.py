"""A component with the type of its argument, and the operations of its card on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from windloom.aggregates.arrow import Column
from windloom.aggregates.card import Card, NativeCard, Refuse, ValueCard
from windloom.aggregates.lifted import AnyLifted, Combined
from windloom.aggregates.registry import card_of
from windloom.kernels.families.algebra import Family
from windloom.model.aggregate import Aggregate, Component
from windloom.model.types import DataType


@dataclass(frozen=True)
class PlannedComponent:
    """A component with the type of its argument, which determines how it is kept."""

    component: Component
    argument_type: DataType | None

    def __reduce__(self) -> tuple[type[PlannedComponent], tuple[Component, DataType | None]]:
        return PlannedComponent, (self.component, self.argument_type)

    # Costs are computed many times, so values that follow from the fields are computed once, and never sent anywhere.

    @cached_property
    def card(self) -> Card:
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


def card_for(aggregate: Aggregate, argument: DataType | None) -> Card:
    """The card that answers an aggregate, which is that of its first component."""
    return PlannedComponent(aggregate.components[0], argument).card


def lower(aggregate: Aggregate, argument: DataType | None, combined: list[Combined], refuse: Refuse) -> pa.Array:
    """The column of answers; `combined` holds the aggregate's components in order."""
    card = card_for(aggregate, argument)
    assert isinstance(card, ValueCard), "lists are asked, not lowered"
    return card.lower(aggregate, argument, combined, refuse)
