"""The observations of one round, of a stream or a batch run: counts of streams and sets, and the time that passed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from windloom.statistics.set_statistics import SetIdentity, SetRound

# The observations of the links of joins: the groups and keys of both sides, and how many of them match.
#
# Join selectivity is estimated from histograms of join keys (source B, section 4.3). They are compressed: the keys with
# the most groups are counted one by one, and the others are assumed to have equally many, which is enough for join
# sizes (Poosala). Rounds also count the pairs that really match. Histograms are taken over from a round only if that
# count differs clearly from what the present ones predict: good estimates stay as they are, and so do the plans made
# from them.

#: Keys that a histogram counts one by one.
MOST_COUNTED = 8
#: Histograms are taken over from a round whose pairs or keys differ from the estimates by more than this share.
THRESHOLD = 0.25


@dataclass(frozen=True, slots=True)
class KeyHistogram:
    """The join keys of one side: `counted` are hashes of keys with their groups, most first; then all others."""

    counted: tuple[tuple[int, int], ...] = ()
    other_groups: int = 0
    other_keys: int = 0

    @property
    def groups(self) -> int:
        return self.other_groups + sum(groups for _, groups in self.counted)

    @property
    def keys(self) -> int:
        return self.other_keys + len(self.counted)

    def pairs(self, other: KeyHistogram) -> float:
        """Return the pairs of groups that match, if all keys of the side with fewer keys occur on the other one.

        >>> KeyHistogram(((7, 10),), 20, 10).pairs(KeyHistogram(((7, 3),), 5, 5))
        40.0
        """
        mine, its = dict(self.counted), dict(other.counted)
        total = float(sum(groups * its[key] for key, groups in mine.items() if key in its))
        left = [groups for key, groups in mine.items() if key not in its]
        right = [groups for key, groups in its.items() if key not in mine]
        for groups, side, wanted in ((left, other, self), (right, self, other)):
            if side.other_keys:  # keys that only one side counts may be among the others of the other
                share = min(1.0, side.other_keys / (len(groups) + wanted.other_keys)) if groups else 0.0
                total += sum(groups) * (side.other_groups / side.other_keys) * share
        keys = max(self.other_keys, other.other_keys)
        return total + (self.other_groups * other.other_groups / keys if keys else 0.0)

    def __add__(self, other: KeyHistogram) -> KeyHistogram:
        """Return the histogram of two parts that have no key in common."""
        every = sorted((*self.counted, *other.counted), key=lambda entry: (-entry[1], entry[0]))
        counted, rest = every[:MOST_COUNTED], every[MOST_COUNTED:]
        groups = self.other_groups + other.other_groups + sum(groups_of_key for _, groups_of_key in rest)
        return KeyHistogram(tuple(counted), groups, self.other_keys + other.other_keys + len(rest))


@dataclass(frozen=True, slots=True)
class LinkRound:
    """One link of a join in one round: the keys of both sides, matching pairs of groups, parents with a match."""

    parent: KeyHistogram
    child: KeyHistogram
    pairs: int
    matched: int

    def __add__(self, other: LinkRound) -> LinkRound:
        """Return the counts of two buckets together; buckets have no key in common."""
        return LinkRound(
            self.parent + other.parent, self.child + other.child, self.pairs + other.pairs, self.matched + other.matched
        )


@dataclass(frozen=True, slots=True)
class LinkEstimate:
    """The estimates of a link: `selectivity` from histograms `rounds` rounds old, `matching` as a share of parents."""

    selectivity: float
    fan_out: float
    matching: float
    parent_keys: float
    child_keys: float
    rounds: int = 1

    @classmethod
    def of(cls, link_round: LinkRound) -> LinkEstimate:
        groups, every = link_round.parent.groups, link_round.parent.groups * link_round.child.groups
        pairs = link_round.parent.pairs(link_round.child)
        return cls(
            pairs / every if every else 0.0,
            pairs / groups if groups else 0.0,
            link_round.matched / groups if groups else 0.0,
            float(link_round.parent.keys),
            float(link_round.child.keys),
        )

    def after(self, link_round: LinkRound) -> LinkEstimate:
        """Return this estimate, one round older, or a new one if selectivity or key counts are clearly others."""
        every = link_round.parent.groups * link_round.child.groups
        pairs = (
            (link_round.pairs / every if every else 0.0, self.selectivity),
            (link_round.parent.keys, self.parent_keys),
            (link_round.child.keys, self.child_keys),
        )
        if any(abs(seen - expected) > THRESHOLD * max(seen, expected) for seen, expected in pairs):
            return LinkEstimate.of(link_round)
        return replace(self, rounds=self.rounds + 1)


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
class ExpectedInput:
    """An announced input of a stream: the number of its tuples, and their first and last tick."""

    tuples: int
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class RoundObserved:
    """The observations of one round. A set without new tuples reports only its cells; `joins` holds links, by name."""

    streams: Mapping[str, StreamRound] = field(default_factory=dict)
    sets: Mapping[SetIdentity, SetRound] = field(default_factory=dict)
    joins: Mapping[str, tuple[LinkRound, ...]] = field(default_factory=dict)
