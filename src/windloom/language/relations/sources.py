"""Relations in FROM: they have no bracket, and occur only together with a stream."""

from __future__ import annotations

from collections.abc import Sequence

from windloom.errors import QueryError
from windloom.language.from_sources import FromSource
from windloom.language.tokens import Source
from windloom.model import Relation, Stream


def check_relations(sources: Sequence[FromSource], found: Sequence[Stream], source: Source) -> None:
    """Refuses a relation with a window, and a query that reads nothing but relations."""
    for from_source, stream in zip(sources, found, strict=True):
        if isinstance(stream, Relation) and from_source.bracket is not None:
            raise source.error(
                f"'{stream.name}' is a relation, and has no windows",
                from_source.bracket_span,
                f"remove the bracket: a window sees the {_seen(stream)}",
            )
    if all(isinstance(stream, Relation) for stream in found):
        raise _no_stream(sources[0], found[0], source)


def _seen(relation: Relation) -> str:
    if relation.is_retroactive:
        return "version of the round in which it closes"
    return "versions that its tuples were joined with when they came in"


def _no_stream(from_source: FromSource, stream: Stream, source: Source) -> QueryError:
    return source.error(
        f"'{stream.name}' is a relation, and the query reads no stream",
        from_source.stream,
        f"join it with a stream, whose windows say when to answer: FROM orders [RANGE 1 hour SLIDE 5 minutes] o"
        f" JOIN {stream.name} ON …; or ask Spark",
    )
