"""What one round, of a stream or of a batch run, observed of its streams and sets: counts, and the time that passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windloom.plan.identity import SetIdentity
from windloom.plan.links import LinkRound


@dataclass(frozen=True, slots=True)
class StreamRound:
    """`tuples` came while `seconds` of event time passed, whether a query wants them or not.

    They lie within a `span` of event time: longer than what passed, if tuples come in disorder. `conditions` counts, by
    SQL, the tuples that satisfied each condition of the signature; `signatures` counts their different
    signatures in a sample.
    """

    tuples: int
    seconds: float
    span: float
    conditions: Mapping[str, int] = field(default_factory=dict)
    signatures: int = 1


@dataclass(frozen=True, slots=True)
class Coming:
    """What is known of the tuples of a stream before a round takes them in: their number, first and last tick."""

    tuples: int
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class SetRound:
    """`tuples` of a set were made into `cells`, in a round that spans `slices` of its slices.

    Windows were answered from cells of `groups` groups, those of earlier rounds included: `held` cells in all.
    """

    tuples: int
    cells: int
    groups: int
    held: int
    slices: float


@dataclass(frozen=True, slots=True)
class RoundObserved:
    """What a round showed. A set that received no tuple shows only what it holds. `joins` holds all links, by name."""

    streams: Mapping[str, StreamRound] = field(default_factory=dict)
    sets: Mapping[SetIdentity, SetRound] = field(default_factory=dict)
    joins: Mapping[str, tuple[LinkRound, ...]] = field(default_factory=dict)
