"""The meaning of names in a join: columns of several sources, qualified with the alias or the name of their stream.

It also reads the trees and types of expressions on tuples, which plans hold as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from sqlglot import exp

from windloom.errors import QueryError, closest, known_names, meant
from windloom.expressions.typing import certain_type
from windloom.language.sql.binder import Binder
from windloom.language.sql.from_sources import FromSource
from windloom.language.sql.names import Names, RowScope, no_column
from windloom.language.sql.syntax import parse_select
from windloom.language.sql.terms import Term
from windloom.language.sql.tokens import SourceText, Span, fold_literals, tokenize
from windloom.model import DataType, Expression, Stream, UserDefined
from windloom.model.clauses import WINDOW_EDGES
from windloom.model.expression import Scalar


@dataclass(frozen=True, slots=True)
class JoinNames(Names):
    """The columns of all sides as those of one stream, in which they are called `alias.column`.

    `places` holds the side and the column that each of these names means.
    `visible` are the sides whose columns can be named: none that stands later in FROM, and none of a SEMI or ANTI join.
    `merged` are the columns of USING, which need no qualifier, each with the side that it is taken from.
    """

    sides: tuple[Names, ...] = ()
    labels: tuple[str, ...] = ()  # the aliases of the sides
    places: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    visible: tuple[int, ...] = ()
    merged: Mapping[str, int] = field(default_factory=dict)
    inner: tuple[int, ...] = ()  # inside EXISTS, the visible sides in which a name is searched for first

    def seeing(self, visible: Iterable[int], inner: Iterable[int] = ()) -> JoinNames:
        """Return these names, if only these sides can be named."""
        return replace(self, visible=tuple(visible), inner=tuple(inner))

    def side_of(self, column: str) -> int:
        """Return the side of a column that is given by its qualified name."""
        return self.places[column][0]

    def is_relation(self, side: int) -> bool:
        """Return whether a side is a relation instead of a stream."""
        return self.sides[side].stream.is_relation

    def find(self, parts: list[exp.Identifier]) -> tuple[str, list[exp.Identifier]] | None:
        if len(parts) > 1:
            for side in self.visible:
                qualified = self.sides[side].find_qualified(parts)
                if qualified is not None:
                    return f"{self.labels[side]}.{qualified[0]}", qualified[1]
        owners = self.owners(parts[0].name)
        return (owners[0][1], parts[1:]) if len(owners) == 1 else None

    def owners(self, name: str) -> list[tuple[str, str]]:
        nearest = self._owners_among(self.inner, name)
        if nearest:
            return nearest
        merged = self.merged.get(name.lower())
        if merged is not None and merged in self.visible:
            return self._owners_among([merged], name)
        return self._owners_among(self.visible, name)

    def _owners_among(self, sides: Iterable[int], name: str) -> list[tuple[str, str]]:
        owners = ((side, owner) for side in sides for owner in self.sides[side].owners(name))
        return [(label, f"{self.labels[side]}.{column}") for side, (label, column) in owners]

    def written(self, column: str) -> tuple[str, str]:
        side, name = self.places[column]
        return self.sides[side].written(name)

    def column_term(self, column: str, node: exp.Expr) -> Term:
        side, name = self.places[column]
        sql = f"{Expression.of_column(self.labels[side]).sql}.{Expression.of_column(name).sql}"
        return Term.of_column(sql, column, node, self.written(column)[1])

    def unknown(self, parts: list[exp.Identifier], node: exp.Expr, binder: Binder, known: list[str]) -> Exception:
        name = parts[0]
        owners = [label for label, _ in self.owners(name.name)]
        if len(parts) == 1 and len(owners) > 1:
            return ambiguous(name.name, owners, node, binder)
        if len(parts) > 1:
            named = [side for side, names in enumerate(self.sides) if names.is_qualified(parts)]
            if not any(side in self.visible for side in named):
                labels = list(dict.fromkeys(label for label, _ in self._columns()))
                if not named:
                    return no_source(name.name, labels, name, binder)
                hint = f"only columns of {_listed(labels)} can: not those of a SEMI or ANTI JOIN, nor of a later source"
                return binder.error(f"columns of '{name.name}' cannot be named here", name, hint)
            name = parts[1]
            if name.name.lower() in WINDOW_EDGES:
                hint = f"leave the condition on {name.name} out: windows that end together are paired without it"
                return binder.error(f"'{parts[0].name}.{name.name}' is no column of the tuples", name, hint)
            said = f"'{parts[0].name}' has no column '{name.name}'"
            return binder.error(said, name, near_columns(name.name, self._columns()))
        return no_column(parts, name, node, binder) or binder.error(
            f"unknown column '{name.name}'", name, near_columns(name.name, self._columns())
        )

    def _columns(self) -> list[tuple[str, str]]:
        """Return all columns that can be named, as (qualifier, name)."""
        visible = [self.sides[side] for side in self.visible]
        return [names.written(column) for names in visible for column in names.stream.columns]


def ambiguous(name: str, owners: Sequence[str], node: exp.Expr, binder: Binder) -> QueryError:
    """Return the error for a name without a qualifier that several sources have."""
    hint = "write " + " or ".join(f"{owner}.{name}" for owner in owners)
    return binder.error(f"column '{name}' is ambiguous: {_listed(owners)} have it", node, hint)


def no_source(name: str, labels: Sequence[str], at: exp.Identifier, binder: Binder) -> QueryError:
    """Return the error for a qualifier that names no source."""
    close = closest(name, list(labels))
    hint = meant(close) if close else f"qualify columns with {_listed(labels, 'or')}"
    return binder.error(f"'{name}' is no source of this query", at, hint)


def near_columns(name: str, qualified: Sequence[tuple[str, str]]) -> str:
    """Return columns that may have been meant, with their qualifiers."""
    close = closest(name, [column for _, column in qualified])
    by_name: dict[str, list[str]] = {}
    for label, column in qualified:
        by_name.setdefault(column.lower(), []).append(f"{label}.{column}")
    qualified_close = [each for close_name in close for each in by_name[close_name.lower()]]
    return meant(qualified_close) if qualified_close else known_names([f"{label}.{name}" for label, name in qualified])


def joined_names(
    sources: Sequence[FromSource],
    streams: Sequence[Stream],
    aliases: frozenset[str],
    own: Mapping[str, UserDefined],
    source: SourceText,
) -> JoinNames:
    """Return the names of a query that reads several sources."""
    labels: list[str] = []
    for from_source in sources:
        if from_source.name.lower() in (label.lower() for label in labels):
            hint = "give one of them another alias: FROM trades [TUMBLE 1 hour] a JOIN trades [TUMBLE 1 hour] b ON …"
            raise source.error(
                f"two sources are called '{from_source.name}'", from_source.alias or from_source.stream, hint
            )
        labels.append(from_source.name)
    return names_of(tuple(labels), tuple(streams), aliases, own)


def names_of(
    labels: tuple[str, ...],
    streams: tuple[Stream, ...],
    aliases: frozenset[str] = frozenset(),
    own: Mapping[str, UserDefined] | None = None,
) -> JoinNames:
    """Return all names of streams that are called by these labels."""
    own, sides = own or {}, []
    places: dict[str, tuple[int, str]] = {}
    for side, (label, stream) in enumerate(zip(labels, streams, strict=True)):
        others = [other.lower() for index, other in enumerate(labels) if index != side]
        # The name of the stream qualifies its columns too, if it means nothing else.
        is_clear = stream.name.lower() not in others and sum(other.name == stream.name for other in streams) == 1
        qualifiers = (label, stream.name) if is_clear else (label,)
        sides.append(Names(stream, qualifiers, aliases, own))
        places |= {f"{label}.{column}": (side, column) for column in stream.columns}
    name = ", ".join(f"{stream.name} AS {label}" for label, stream in zip(labels, streams, strict=True))
    joined = Stream(name, {column: streams[side].columns[of_side] for column, (side, of_side) in places.items()})
    return JoinNames(joined, (), aliases, own, tuple(sides), labels, places, tuple(range(len(labels))))


def _listed(names: Sequence[str], word: str = "and") -> str:
    quoted = [f"'{name}'" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" {word} {quoted[-1]}"


def tuple_tree(sql: str, columns: Mapping[str, DataType]) -> Scalar | None:
    """Return the tree of an expression over these columns; None if it cannot be read here.

    >>> tuple_tree("price > 1", {"price": DataType.parse("double")}).name
    '>'
    """
    return _tuple_tree(sql, tuple(columns.items()))


def expression_type(expression: Expression, columns: Mapping[str, DataType]) -> DataType | None:
    """Return the type of an expression over these columns; None if only Spark knows it, or may refuse the expression.

    >>> columns = {"price": DataType.parse("decimal(10,2)"), "volume": DataType.parse("int")}
    >>> str(expression_type(Expression("coalesce(price * volume, 0)"), columns))
    'decimal(21,2)'
    """
    return certain_type(tuple_tree(expression.sql, columns), columns)


def joined_type(expression: Expression, aliases: Sequence[str], streams: Sequence[Stream]) -> DataType | None:
    """Return the type of an expression over the qualified columns of streams; None if only Spark knows it.

    >>> price = {"price": DataType.parse("decimal(10,2)"), "qty": DataType.parse("int")}
    >>> str(joined_type(Expression("o.price * p.qty"), ["o", "p"], [Stream("orders", price), Stream("parts", price)]))
    'decimal(21,2)'
    """
    names = names_of(tuple(aliases), tuple(streams))
    if expression.column is not None:
        return names.stream.columns[expression.column]
    return certain_type(_read(expression.sql, names), names.stream.columns)


@lru_cache(maxsize=4_096)
def _tuple_tree(sql: str, columns: tuple[tuple[str, DataType], ...]) -> Scalar | None:
    return _read(sql, Names(Stream("", dict(columns)), (), frozenset()))


def _read(sql: str, names: Names) -> Scalar | None:
    source = SourceText(f"SELECT {sql}", "an expression")
    try:
        tokens = tokenize(source)
        tree = parse_select(fold_literals(tokens, source), source)
        if len(tree.expressions) != 1:
            return None
        return Binder(RowScope(names, "a tuple"), source, Span.of(tokens)).bind(tree.expressions[0]).tree
    except (QueryError, RecursionError):  # nested too deeply to analyse
        return None
