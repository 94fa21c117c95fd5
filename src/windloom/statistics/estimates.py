"""Estimates: what rounds have shown of streams and sets, as the figures that plans are made from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from windloom.statistics.observations import LinkEstimate, RoundObserved, StreamRound
from windloom.statistics.set_statistics import Mean, SetEstimate, SetIdentity, SetRound, weighed


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


@dataclass(frozen=True, slots=True)
class Estimates:
    """The estimates from all rounds so far. Streams and sets whose tuples no round has seen are missing.

    `joins` are by name, each with an estimate of every link.
    """

    streams: Mapping[str, StreamEstimate] = field(default_factory=dict)
    sets: Mapping[SetIdentity, SetEstimate] = field(default_factory=dict)
    joins: Mapping[str, tuple[LinkEstimate, ...]] = field(default_factory=dict)

    def before(self, earlier: Estimates) -> Estimates:
        """Return these estimates, completed by earlier ones and, in streams, by earlier shares of conditions."""
        streams = dict(self.streams)
        for name in streams.keys() & earlier.streams.keys():
            own, old = streams[name], earlier.streams[name]
            signatures = own.signatures if own.conditions else old.signatures
            streams[name] = replace(own, conditions={**old.conditions, **own.conditions}, signatures=signatures)
        return Estimates({**earlier.streams, **streams}, {**earlier.sets, **self.sets}, {**earlier.joins, **self.joins})

    def without_rounds(self) -> Estimates:
        """Return these estimates without lengths of rounds, for a stream that starts after a batch run."""
        return replace(self, streams={name: replace(each, round=None) for name, each in self.streams.items()})

    def selectivity(self, identity: SetIdentity) -> Mean | None:
        """Return the share of its stream's tuples that a set wants, seen of it or of another set with its predicate."""
        set_estimate, stream = self.sets.get(identity), self.streams.get(identity.stream)
        if set_estimate is not None:
            return set_estimate.selectivity
        share = None if stream is None else stream.conditions.get(identity.predicate)
        return None if stream is None or share is None else Mean(share, stream.rate.rounds)

    def groups(self, identity: SetIdentity) -> Mean | None:
        """Return the groups of a set, or else of sets that have its stream and grouping but another predicate."""
        own = self.sets.get(identity)
        if own is not None:
            return own.groups
        wanted = identity.stream, identity.grouping
        alike = [each.groups for other, each in self.sets.items() if (other.stream, other.grouping) == wanted]
        return max(alike, key=lambda figure: figure.value, default=None)


# The memory of rounds: estimates are decayed means of what the last rounds observed (source B, section 4.3).
#
# A round that is r rounds old has the weight e^(−a·r), and one that is d rounds old has none. Rates are ratios of
# weighted tuples to weighted seconds, so that with rounds of equal length a rate is the mean of the rounds' rates. A
# round in which much more time passes than tuples usually span (a backlog, or history) counts as one of four times that
# span, because it does not predict what comes next.
#
# A mean forgets large values slowly: after a fall to a hundredth, half of the rounds in memory pass before it is close.
# So a *leap* is distinguished from noise. If two rounds in a row are both far above, or both far below, what was
# remembered before them, in rate or in length, then everything before them is forgotten. The length of a round is not
# noise: a trigger, or the layout of files, determines it, and a change that large lasts. So one round is enough for it.

#: The number of rounds that estimates are made from (d), and how fast the weight of older ones falls (a).
ROUNDS, DECAY = 16, 0.5
#: Rounds longer than this many times the usual span of tuples count as that long.
LONGEST = 4.0
#: Rounds that differ by this factor from what was remembered, two in a row, are a leap.
LEAP = 4.0
#: A trend is certain if it is this many times its standard error, over at least this many rounds.
CERTAIN, LEAST_ROUNDS = 3.0, 4


class Memory:
    """The observations of the last rounds, by stream and set. Sets that the last round did not have are forgotten.

    Without a `leap`, means are always those of source B.
    """

    def __init__(self, rounds: int = ROUNDS, decay: float = DECAY, leap: float | None = LEAP) -> None:
        self.rounds, self.decay, self.leap = rounds, decay, leap
        self._weights = [math.exp(-decay * age) for age in range(rounds)]
        # Newest first; never changed in place, so that another thread may read while a round ends.
        self._streams: Mapping[str, tuple[StreamRound, ...]] = {}
        self._sets: Mapping[SetIdentity, tuple[tuple[SetRound, StreamRound], ...]] = {}
        self._joins: Mapping[str, tuple[LinkEstimate, ...]] = {}

    def add(self, seen: RoundObserved) -> None:
        """Add a completed round. A stream without new tuples keeps its earlier observations."""
        streams = dict(self._streams)
        leaping = set()
        for name, stream_round in seen.streams.items():
            if stream_round.tuples:
                rounds = (stream_round, *streams.get(name, ()))[: self.rounds]
                extents = [_extent(each) for each in rounds]
                pairs = zip(rounds, extents, strict=True)
                paces = [each.tuples / extent if extent > 0 else 0.0 for each, extent in pairs]
                if self._leaps(paces) or self._leaps(extents):
                    rounds = rounds[:2]
                    leaping.add(name)
                streams[name] = rounds
        sets = {}
        for identity, each in seen.sets.items():
            before, beside = self._sets.get(identity, ()), seen.streams.get(identity.stream)
            if beside is not None and beside.tuples:
                before = ((each, beside), *before)[: self.rounds]
                if identity.stream in leaping or self._leaps([float(set_round.groups) for set_round, _ in before]):
                    before = before[:2]
            if before:
                sets[identity] = before
        self._streams, self._sets = streams, sets
        joins = {}
        for name, links in seen.joins.items():
            known = self._joins.get(name, ())
            estimates = known if len(known) == len(links) else (None,) * len(links)
            joins[name] = tuple(
                LinkEstimate.of(link) if estimate is None else estimate.after(link)
                for estimate, link in zip(estimates, links, strict=True)
            )
        self._joins = joins

    def _leaps(self, values: Sequence[float]) -> bool:
        """Return whether the two newest values are far from all before, on the same side."""
        if self.leap is None or len(values) < 3 or min(values) <= 0:
            return False
        usual = self._geometric(values[2:])  # a geometric mean, which a single burst moves by little
        assert usual is not None
        return min(values[:2]) > self.leap * usual or max(values[:2]) < usual / self.leap

    def estimates(self, *, trends: bool = False) -> Estimates:
        """Return the estimates for the next round; `trends` take longer to find than the rest."""
        streams = {name: self._stream(rounds, trends) for name, rounds in self._streams.items()}
        sets = {identity: self._set(rounds, trends) for identity, rounds in self._sets.items()}
        return Estimates(
            {name: stream_estimate for name, stream_estimate in streams.items() if stream_estimate is not None},
            {identity: set_estimate for identity, set_estimate in sets.items() if set_estimate is not None},
            self._joins,
        )

    def rate_of(self, stream: str) -> float | None:
        """Return the estimated rate of one stream."""
        rounds = self._streams.get(stream, ())
        weights = self._counting(rounds)
        seconds = weighed(weights, [stream_round.seconds for stream_round in rounds])
        return weighed(weights, [stream_round.tuples for stream_round in rounds]) / seconds if seconds > 0 else None

    def round_of(self, stream: str) -> float | None:
        """Return the estimated length of a round of one stream, in seconds of its time."""
        return self._geometric(self._lengths(self._streams.get(stream, ())))

    def groups_of(self, identity: SetIdentity) -> float | None:
        """Return the estimated number of groups of one set."""
        return self._mean([float(each.groups) for each, _ in self._sets.get(identity, ()) if each.groups])

    def share_of(self, stream: str, condition: str) -> float | None:
        """Return the estimated share of the tuples of a stream that satisfy a condition, given by its SQL."""
        rounds = self._streams.get(stream, ())
        if not any(condition in stream_round.conditions for stream_round in rounds):
            return None
        return self._share(condition, rounds, self._counting(rounds))

    def _lengths(self, rounds: Sequence[StreamRound]) -> list[float]:
        """Return the lengths of rounds, newest first, since they last became far longer, or far shorter."""
        lengths: list[float] = []
        for stream_round in rounds:
            ratio = _extent(stream_round) / max(_extent(rounds[0]), 1e-12)
            if lengths and self.leap is not None and not 1 / self.leap <= ratio <= self.leap:
                break
            if stream_round.seconds > 0:
                lengths.append(stream_round.seconds)
        return lengths

    def _geometric(self, values: Sequence[float]) -> float | None:
        """Return the decayed geometric mean, newest first."""
        logs = self._mean([math.log(value) for value in values])
        return None if logs is None else math.exp(logs)

    def _mean(self, values: Sequence[float]) -> float | None:
        """Return the decayed mean, newest first."""
        return weighed(self._weights, values) / sum(self._weights[: len(values)]) if values else None

    def _counting(self, rounds: Sequence[StreamRound]) -> list[float]:
        """Return the weight of each round, newest first."""
        longest = LONGEST * median(stream_round.span for stream_round in rounds) if rounds else 0.0
        capped = (min(1.0, longest / each.seconds) if each.seconds > 0 else 1.0 for each in rounds)
        return [weight * part for weight, part in zip(self._weights, capped, strict=False)]

    def _stream(self, rounds: Sequence[StreamRound], trends: bool) -> StreamEstimate | None:
        weights = self._counting(rounds)
        seconds = weighed(weights, [each.seconds for each in rounds])
        tuples = weighed(weights, [each.tuples for each in rounds])
        if seconds <= 0:
            return None
        lengths = self._lengths(rounds)
        length = self._geometric(lengths)
        assert length is not None, "some time has passed"
        conditions = {sql for each in rounds for sql in each.conditions}
        rates = [each.tuples / each.seconds for each in rounds if each.seconds > 0]
        trend = self._trend(rates) if trends else 0.0
        return StreamEstimate(
            Mean(tuples / seconds, len(rounds), trend),
            Mean(length, len(lengths), self._trend(lengths) if trends else 0.0),
            {sql: self._share(sql, rounds, weights) for sql in sorted(conditions)},
            self._mean([float(stream_round.signatures) for stream_round in rounds]) or 1.0,
        )

    @staticmethod
    def _share(sql: str, rounds: Sequence[StreamRound], weights: Sequence[float]) -> float:
        """Return the share of tuples that satisfy a condition, over the rounds in which it was tested."""
        tested = [(each, weight) for each, weight in zip(rounds, weights, strict=True) if sql in each.conditions]
        total = sum(each.tuples * weight for each, weight in tested)
        return sum(each.conditions[sql] * weight for each, weight in tested) / total if total > 0 else 0.0

    def _set(self, rounds: Sequence[tuple[SetRound, StreamRound]], trends: bool) -> SetEstimate | None:
        came = [beside.tuples for _, beside in rounds]
        weights = self._counting([beside for _, beside in rounds])
        if weighed(weights, came) <= 0:
            return None

        def mean(values: Sequence[float]) -> Mean:
            return Mean(self._mean(values) or 0.0, len(values), self._trend(values) if trends else 0.0)

        return SetEstimate.of([set_round for set_round, _ in rounds], came, weights, mean)

    def _trend(self, values: Sequence[float]) -> float:
        """Return the slope of the logarithm over rounds, by weighted least squares, as a share per round."""
        if len(values) < LEAST_ROUNDS or min(values) <= 0:
            return 0.0
        weights, logs = self._weights[: len(values)], [math.log(value) for value in values]
        total = sum(weights)
        ages = [-float(age) for age in range(len(values))]
        mid, level = weighed(weights, ages) / total, weighed(weights, logs) / total
        across = sum(w * (age - mid) ** 2 for w, age in zip(weights, ages, strict=True))
        slope = sum(w * (age - mid) * (log - level) for w, age, log in zip(weights, ages, logs, strict=True)) / across
        left = [log - level - slope * (age - mid) for age, log in zip(ages, logs, strict=True)]
        variance = sum(w * residual * residual for w, residual in zip(weights, left, strict=True)) / total
        noise = variance * len(values) / (len(values) - 2)
        error = math.sqrt(noise * sum(w * w * (age - mid) ** 2 for w, age in zip(weights, ages, strict=True))) / across
        return math.expm1(slope) if abs(slope) > CERTAIN * error else 0.0


def _extent(stream_round: StreamRound) -> float:
    """Return the seconds in which the tuples of a round lie: in disorder, they may hardly advance time."""
    return max(stream_round.seconds, stream_round.span)


def estimates_of(seen: RoundObserved) -> Estimates:
    """Return the estimates that follow from one round alone."""
    memory = Memory(rounds=1)
    memory.add(seen)
    return memory.estimates()
