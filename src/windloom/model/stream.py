"""Streams and relations: what a query may read, and how tuples are joined with relations.

Relations are rows without a time, given version by version. The words are those of Golab (source E, section 3.3.1). A
*retroactive* relation is a source of a join like a windowed stream: windows that close in a round see the version that
the round has. A *non-retroactive* one is joined with every tuple as it comes in, and later versions of the relation
change nothing for that tuple: queries read a stream that is *enriched* with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from windloom.model.expression import Expression
from windloom.model.types import TIMESTAMP, DataType, TypeKind

#: The rate, in tuples per second, that is assumed if it is neither given nor measured.
DEFAULT_EVENTS_PER_SECOND = 1_000.0


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream that queries may read.

    `time_unit` is None for timestamp columns, else the unit (`s`, `ms`, `us`) of an integer time column.
    """

    #: Whether its rows have no time.
    is_relation: ClassVar[bool] = False

    name: str
    columns: Mapping[str, DataType] = field(hash=False)
    time: str = ""
    delay_ticks: int = 0
    time_unit: str | None = None
    events_per_second: float | None = None

    @property
    def window_type(self) -> DataType:
        """The type of `window_start` and `window_end`: the time column's, or TIMESTAMP if that is not an instant."""
        kind = self.columns[self.time]
        return kind if kind.kind is TypeKind.TIMESTAMP_NTZ else TIMESTAMP

    @property
    def title(self) -> str:
        """Its kind and name, as used in messages.

        >>> Stream("trades", {}).title
        "stream 'trades'"
        """
        return f"{'relation' if self.is_relation else 'stream'} '{self.name}'"

    def find_column(self, name: str) -> str | None:
        """Return the spelling of the column; names are case-insensitive, as in Spark by default."""
        if name in self.columns:
            return name
        lowered = name.lower()
        return next((column for column in self.columns if column.lower() == lowered), None)


class JoinKind(StrEnum):
    """Determines how often a row of the parent counts if n rows of the child match it."""

    INNER = "inner"  # n times
    LEFT = "left"  # n times, or once if n is 0, with NULLs for the child and for all sides below it
    SEMI = "semi"  # once if n > 0
    ANTI = "anti"  # once if n is 0

    @property
    def words(self) -> str:
        """The words for it in CQL.

        >>> JoinKind.INNER.words, JoinKind.ANTI.words
        ('JOIN', 'LEFT ANTI JOIN')
        """
        return {"inner": "JOIN", "left": "LEFT JOIN"}.get(self.value, f"LEFT {self.upper()} JOIN")

    @property
    def shows_child(self) -> bool:
        """Whether columns of the child can be named in the result."""
        return self in (JoinKind.INNER, JoinKind.LEFT)


@dataclass(frozen=True, slots=True)
class Relation(Stream):
    """A name and columns; `time` and the other fields that concern time have no meaning."""

    is_relation: ClassVar[bool] = True

    is_retroactive: bool = True

    @property
    def kind(self) -> str:
        """The kind of the relation, as users write it.

        >>> Relation("person", {}).kind, Relation("person", {}, is_retroactive=False).kind
        ('retroactive', 'non-retroactive')
        """
        return "retroactive" if self.is_retroactive else "non-retroactive"


@dataclass(frozen=True, slots=True)
class Version:
    """The facts about one version of a relation.

    `number` counts the versions that a stream has seen, the first being 1, and `round` is the round that took this one.
    `rows` are those that some query wants, and `nbytes` is the size of the part of them that is kept, or sent to
    executors; None if that is not known.
    """

    number: int
    round: int
    rows: int | None = None
    nbytes: int | None = None


@dataclass(frozen=True, slots=True)
class Enrichment:
    """One relation that tuples are joined with as they come in.

    `on` is over the columns of the enriched stream, where those of the relation are called `label.column`.
    """

    relation: str
    label: str
    kind: JoinKind
    on: Expression

    def column(self, name: str) -> str:
        """Return the name that a column of the relation has in the enriched stream."""
        return f"{self.label}.{name}"

    def __str__(self) -> str:
        renamed = "" if self.label == self.relation else f" AS {self.label}"
        return f"{self.kind.words} {self.relation}{renamed} ON {self.on}"


@dataclass(frozen=True, slots=True)
class EnrichedStream(Stream):
    """A stream whose tuples are joined with relations, one after another; its name shows how.

    Frontiers, delays and late tuples are those of `base`, the stream that the tuples come from.
    """

    base: str = ""
    enrichments: tuple[Enrichment, ...] = ()

    @property
    def relations(self) -> tuple[str, ...]:
        """The names of its relations, each once."""
        return tuple(dict.fromkeys(enrichment.relation for enrichment in self.enrichments))


def enriched(base: Stream, enrichments: tuple[Enrichment, ...], relations: Mapping[str, Stream]) -> EnrichedStream:
    """Return a stream joined with relations.

    >>> kinds = {"ts": DataType.parse("timestamp"), "user": DataType.parse("int")}
    >>> person = Relation("person", {"id": kinds["user"]}, is_retroactive=False)
    >>> one = Enrichment("person", "person", JoinKind.LEFT, Expression("user = `person.id`"))
    >>> found = enriched(Stream("orders", kinds, "ts"), (one,), {"person": person})
    >>> found.name, list(found.columns)
    ('orders LEFT JOIN person ON user = `person.id`', ['ts', 'user', 'person.id'])
    """
    columns: dict[str, DataType] = dict(base.columns)
    for enrichment in enrichments:
        if enrichment.kind.shows_child:
            read = relations[enrichment.relation].columns
            columns |= {enrichment.column(column): kind for column, kind in read.items()}
    name = " ".join([base.name, *map(str, enrichments)])
    return EnrichedStream(
        name, columns, base.time, base.delay_ticks, base.time_unit, base.events_per_second, base.name, enrichments
    )
