"""Relations in FROM: they have no bracket, and occur only together with a stream."""

from __future__ import annotations

from collections.abc import Sequence

from windloom.language.from_sources import FromSource
from windloom.language.tokens import Source
from windloom.model import Relation, Stream


def check_relations(sources: Sequence[FromSource], streams: Sequence[Stream], source: Source) -> None:
    """Refuse a relation with a window, and a query that reads nothing but relations."""
    for from_source, stream in zip(sources, streams, strict=True):
        if isinstance(stream, Relation) and from_source.bracket is not None:
            if stream.is_retroactive:
                seen = "version of the round in which it closes"
            else:
                seen = "versions that its tuples were joined with when they came in"
            raise source.error(
                f"'{stream.name}' is a relation, and has no windows",
                from_source.bracket_span,
                f"remove the bracket: a window sees the {seen}",
            )
    if all(isinstance(stream, Relation) for stream in streams):
        name = streams[0].name
        raise source.error(
            f"'{name}' is a relation, and the query reads no stream",
            sources[0].stream,
            f"join it with a stream, whose windows say when to answer: FROM orders [RANGE 1 hour SLIDE 5 minutes] o"
            f" JOIN {name} ON …; or ask Spark",
        )
