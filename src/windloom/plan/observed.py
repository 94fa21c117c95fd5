"""The observations of one round, of a stream or a batch run: counts of streams and sets, and the time that passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windloom.plan.identity import SetIdentity
from windloom.plan.links import LinkRound


@dataclass(frozen=True, slots=True)
class StreamRound:
    """The tuples of a stream in one round: `tuples`, wanted or not, while `seconds` of event time passed.

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
    """An announced input of a stream: the number of its tuples, and their first and last tick."""

    tuples: int
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class SetRound:
    """A set in one round: its `tuples` became `cells`, over `slices` of its slices.

    Windows were answered from cells of `groups` groups, those of earlier rounds included: `held` cells in all.
    """

    tuples: int
    cells: int
    groups: int
    held: int
    slices: float


@dataclass(frozen=True, slots=True)
class RoundObserved:
    """The observations of one round. A set without new tuples reports only its cells; `joins` holds links, by name."""

    streams: Mapping[str, StreamRound] = field(default_factory=dict)
    sets: Mapping[SetIdentity, SetRound] = field(default_factory=dict)
    joins: Mapping[str, tuple[LinkRound, ...]] = field(default_factory=dict)
