"""What the task of a shard returns: the files it wrote and what it counted. The log of the round keeps these notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windloom.durable.shards.pieces import Piece
from windloom.rounds.lateness import Lateness
from windloom.rounds.step import StepCounts


@dataclass(frozen=True, slots=True)
class ShardNote:
    """`state` and `answers` name files; there is no file of answers where there are none for the driver to finish.

    `kept_from` tells from when on the shard still holds the cells of a set, if it has dropped earlier ones. `pieces`
    are rows that the task has written to where the sink keeps them.
    """

    shard: int
    state: str
    state_bytes: int
    answers: str | None
    counts: StepCounts
    kept_from: Mapping[int, int]  # by number of the partial set
    pieces: tuple[Piece, ...] = ()

    @property
    def files(self) -> list[str]:
        return [self.state] if self.answers is None else [self.state, self.answers]

    def to_json(self) -> dict[str, Any]:
        return {
            "shard": self.shard,
            "state": self.state,
            "state_bytes": self.state_bytes,
            "answers": self.answers,
            "tuples": _named(self.counts.tuples),
            "partials": _named(self.counts.partials),
            "kept_from": _named(self.kept_from),
            "pieces": [[piece.table, piece.file, piece.rows] for piece in self.pieces],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ShardNote:
        counts = StepCounts(_numbered(values["tuples"]), _numbered(values["partials"]))
        kept_from = _numbered(values["kept_from"])
        pieces = tuple(Piece(*piece) for piece in values["pieces"])
        return cls(
            values["shard"], values["state"], values["state_bytes"], values["answers"], counts, kept_from, pieces
        )


def counts_of(notes: Sequence[ShardNote], late: Lateness) -> StepCounts:
    """The counts of all shards together; late tuples are counted where they are taken in."""
    return StepCounts(
        _added(note.counts.tuples for note in notes), _added(note.counts.partials for note in notes), late
    )


def kept_from_of(notes: Iterable[ShardNote]) -> dict[int, int]:
    """The tick from which on all shards hold every tuple of a set, for sets of which some shard has dropped cells."""
    found: dict[int, int] = {}
    for note in notes:
        for number, tick in note.kept_from.items():
            found[number] = max(tick, found.get(number, tick))
    return found


def _added(counts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    total: dict[int, int] = {}
    for one in counts:
        for number, value in one.items():
            total[number] = total.get(number, 0) + value
    return total


def _named(values: Mapping[int, int]) -> dict[str, int]:
    return {str(number): value for number, value in values.items()}


def _numbered(values: Mapping[str, int]) -> dict[int, int]:
    return {int(number): value for number, value in values.items()}
