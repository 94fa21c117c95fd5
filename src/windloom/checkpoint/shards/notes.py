"""What the task of a shard returns: the files it wrote and what it counted. The log of the round keeps these notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from windloom.checkpoint.json_codec import from_json, to_json
from windloom.checkpoint.shards.pieces import Piece
from windloom.rounds.lateness import Lateness
from windloom.rounds.step import StepCounts
from windloom.statistics.observations import LinkRound


@dataclass(frozen=True, slots=True)
class ShardNote:
    """`state`, `answers` and `folds` name files; the last two are None if the driver has nothing to finish.

    `kept_from` is the tick from which on the shard still holds the cells of a set, if it has dropped earlier ones.
    `pieces` are rows that the task has written where the sink keeps them. `took` has the seconds of queries that
    are answered together, by the name of the first of them.
    """

    shard: int
    state: str
    state_bytes: int
    answers: str | None
    counts: StepCounts
    kept_from: Mapping[int, int]  # by number of the partial set
    pieces: tuple[Piece, ...] = ()
    folds: str | None = None  # for joins whose answers are divided among shards
    took: Mapping[str, float] = field(default_factory=dict)

    @property
    def files(self) -> list[str]:
        return [name for name in (self.state, self.answers, self.folds) if name is not None]

    def to_json(self) -> dict[str, Any]:
        return {
            "shard": self.shard,
            "state": self.state,
            "state_bytes": self.state_bytes,
            "answers": self.answers,
            "folds": self.folds,
            "tuples": _named(self.counts.tuples),
            "partials": _named(self.counts.partials),
            "groups": _named(self.counts.groups),
            "held": _named(self.counts.held),
            "links": [[*place, to_json(LinkRound, link_round)] for place, link_round in self.counts.links.items()],
            "kept_from": _named(self.kept_from),
            "pieces": [[piece.table, piece.file, piece.rows] for piece in self.pieces],
            "took": {name: round(seconds, 6) for name, seconds in self.took.items()},
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ShardNote:
        counts = StepCounts(
            _numbered(values["tuples"]),
            _numbered(values["partials"]),
            groups=_numbered(values["groups"]),
            held=_numbered(values["held"]),
            links={(place, number): from_json(LinkRound, link) for place, number, link in values["links"]},
        )
        kept_from = _numbered(values["kept_from"])
        pieces = tuple(Piece(*piece) for piece in values["pieces"])
        return cls(
            values["shard"],
            values["state"],
            values["state_bytes"],
            values["answers"],
            counts,
            kept_from,
            pieces,
            values.get("folds"),
            values.get("took", {}),
        )


def counts_of(notes: Sequence[ShardNote], late: Lateness) -> StepCounts:
    """The counts of all shards together; late tuples are counted where they are taken in.

    Every group belongs to one shard; the one group of a set without grouping columns belongs to the first shard.
    """
    every = [note.counts for note in notes]
    return StepCounts(
        _added(step_counts.tuples for step_counts in every),
        _added(step_counts.partials for step_counts in every),
        late,
        _added(step_counts.groups for step_counts in every),
        _added(step_counts.held for step_counts in every),
        _linked(step_counts.links for step_counts in every),
    )


def took_of(notes: Iterable[ShardNote]) -> dict[str, float]:
    """The seconds of answers, added up over all shards."""
    found: dict[str, float] = {}
    for note in notes:
        for name, seconds in note.took.items():
            found[name] = found.get(name, 0.0) + seconds
    return found


def kept_from_of(notes: Iterable[ShardNote]) -> dict[int, int]:
    """The tick from which on all shards hold every tuple of a set, for sets whose cells some shard has dropped."""
    found: dict[int, int] = {}
    for note in notes:
        for number, tick in note.kept_from.items():
            found[number] = max(tick, found.get(number, tick))
    return found


def _added(counts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for count in counts:
        for number, value in count.items():
            total[number] = total.get(number, 0) + value
    return total


def _linked(links: Iterable[Mapping[tuple[int, int], LinkRound]]) -> dict[tuple[int, int], LinkRound]:
    total: dict[tuple[int, int], LinkRound] = {}
    for shard_links in links:
        for place, link in shard_links.items():
            total[place] = total[place] + link if place in total else link
    return total


def _named(values: Mapping[int, int]) -> dict[str, int]:
    return {str(number): value for number, value in values.items()}


def _numbered(values: Mapping[str, int]) -> dict[int, int]:
    return {int(number): value for number, value in values.items()}
