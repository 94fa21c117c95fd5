"""Estimates: what rounds have shown of streams and sets, as the figures that plans are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from windloom.plan.identity import SetIdentity
from windloom.plan.links import LinkEstimate


@dataclass(frozen=True, slots=True)
class Mean:
    """An estimate from `rounds` rounds; `trend` is the share by which it changes per round, 0 if that is uncertain."""

    value: float
    rounds: int
    trend: float = 0.0


@dataclass(frozen=True, slots=True)
class StreamEstimate:
    """The estimated figures of a stream.

    `rate` is tuples per second of event time, `round` the seconds of event time that pass per round.

    `conditions` are, by SQL, the shares of tuples that satisfy a condition.
    """

    rate: Mean
    round: Mean | None
    conditions: Mapping[str, float] = field(default_factory=dict)
    signatures: float = 1.0

    def before(self, earlier: StreamEstimate) -> StreamEstimate:
        """This estimate, completed by earlier shares of conditions that it lacks."""
        return replace(
            self,
            conditions={**earlier.conditions, **self.conditions},
            signatures=self.signatures if self.conditions else earlier.signatures,
        )


@dataclass(frozen=True, slots=True)
class SetEstimate:
    """The estimated figures of a set.

    `selectivity` is the share of its stream's tuples that a set wants, `cells` are made per slice.

    For `regularity` and `spread`, see `Statistics`.
    """

    selectivity: Mean
    groups: Mean
    cells: Mean
    regularity: float = 0.0
    spread: float = 1.0


@dataclass(frozen=True, slots=True)
class Estimates:
    """The estimates from all rounds so far. Streams and sets whose tuples no round has seen are missing.

    `joins` are by name, each with an estimate of every link.
    """

    streams: Mapping[str, StreamEstimate] = field(default_factory=dict)
    sets: Mapping[SetIdentity, SetEstimate] = field(default_factory=dict)
    joins: Mapping[str, tuple[LinkEstimate, ...]] = field(default_factory=dict)

    def before(self, earlier: Estimates) -> Estimates:
        """These estimates, completed by earlier ones."""
        streams = {
            name: estimate.before(earlier.streams[name]) if name in earlier.streams else estimate
            for name, estimate in self.streams.items()
        }
        return Estimates({**earlier.streams, **streams}, {**earlier.sets, **self.sets}, {**earlier.joins, **self.joins})

    def without_rounds(self) -> Estimates:
        """These estimates without the lengths of rounds, for a stream that starts from what a batch run has shown."""
        return replace(
            self, streams={name: replace(stream_estimate, round=None) for name, stream_estimate in self.streams.items()}
        )

    def selectivity(self, identity: SetIdentity) -> Mean | None:
        """The share of its stream's tuples that a set wants, observed of it or of another set with its predicate."""
        set_estimate, stream = self.sets.get(identity), self.streams.get(identity.stream)
        if set_estimate is not None:
            return set_estimate.selectivity
        share = None if stream is None else stream.conditions.get(identity.predicate)
        return None if stream is None or share is None else Mean(share, stream.rate.rounds)

    def groups(self, identity: SetIdentity) -> Mean | None:
        """The groups of a set, or else of sets that have its stream and grouping but another predicate."""
        own = self.sets.get(identity)
        if own is not None:
            return own.groups
        like = [
            set_estimate.groups
            for other, set_estimate in self.sets.items()
            if (other.stream, other.grouping) == (identity.stream, identity.grouping)
        ]
        return max(like, key=lambda figure: figure.value, default=None)
