"""The cards; a new one is one file and one line here."""

from __future__ import annotations

from windloom.aggregates.bits import Bits
from windloom.aggregates.buckets import Buckets
from windloom.aggregates.card import Card, ListCard, Planned
from windloom.aggregates.counts import Counts
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
from windloom.model.aggregate import declare_function

CARDS: tuple[Card, ...] = (
    Counts(),
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


def card_of(planned: Planned) -> Card:
    """The card of a component."""
    if planned.component.own is not None:
        return USER_DEFINED
    return next(card for card in _BY_KIND[planned.component.kind] if card.keeps(planned))
