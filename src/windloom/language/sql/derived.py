"""`FROM (SELECT …)`: a derived table that only projects and filters, read as if its names were written out.

`SELECT w.start, max(p) FROM (SELECT window(ts, '1 hour') AS w, price AS p FROM trades) GROUP BY w` is the query
`SELECT window(ts, '1 hour').start, max(price) FROM trades GROUP BY window(ts, '1 hour')`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import Token, TokenType, exp

from windloom.aggregates.equivalents import EQUIVALENTS, WITHIN_GROUP
from windloom.aggregates.registry import FUNCTIONS
from windloom.errors import near_names
from windloom.language.sql.from_clause import FromClause, check_clauses, cut_from_clause, find_from
from windloom.language.sql.spark_names import spark_name
from windloom.language.sql.syntax import parse_select, span_of
from windloom.language.sql.tokens import (
    SourceText,
    Span,
    closing,
    fold_literals,
    is_name,
    is_word,
    replaced,
    without_semicolons,
)
from windloom.model.windows import WINDOW_FUNCTIONS

_ONLY = "it may rename, compute and filter: FROM (SELECT window(ts, '1 hour') AS w, price AS p FROM trades) GROUP BY w"


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """The columns of a derived table by lower-case name, as expressions of what it reads."""

    alias: str | None
    columns: dict[str, exp.Expr]
    has_star: bool
    where: exp.Expr | None


def parse_query_tree(
    tokens: Sequence[Token], source: SourceText, own: Collection[str]
) -> tuple[FromClause, exp.Select]:
    """Return the sources of a query, and its syntax tree without them; derived tables are written out."""
    tokens = _with_plain_words(without_semicolons(tokens), source)
    position = find_from(tokens) if tokens else None
    opens = None if position is None else tokens[position + 1 : position + 3]
    kinds = [] if opens is None else [token.token_type for token in opens]
    if position is None or kinds != [TokenType.L_PAREN, TokenType.SELECT]:
        clause = cut_from_clause(tokens, source)
        return clause, parse_select(fold_literals(clause.rest, source), source)
    stop = closing(tokens, position + 1)
    inner_clause, inner = parse_query_tree(tokens[position + 2 : stop], source, own)
    alias, after = _alias(tokens, stop + 1)
    rest = tokens[after:]
    if len(inner_clause.sources) > 1 or (rest and _joins(rest[0])):
        at = tokens[position + 1] if not rest else rest[0]
        hint = "join streams with their windows: FROM a [TUMBLE 1 hour] JOIN b [TUMBLE 1 hour] ON a.x = b.x"
        raise source.error("a derived table cannot be joined", at, hint)
    check_clauses(rest, tokens[after - 1], source)
    outer = [*tokens[:position], *rest]
    tree = parse_select(fold_literals(outer, source), source)
    table = _read(inner, inner_clause, alias, source, own)
    _write_out(tree, table, Span.of(outer[:1]), source)
    return replace(inner_clause, rest=outer), tree


def _with_plain_words(tokens: Sequence[Token], source: SourceText) -> list[Token]:
    """Return the tokens with the words that sqlglot takes for others, and with names in double quotes as names.

    Spark reads double quotes as a string; systems with time_bucket(), or tumble() without DESCRIPTOR, as a name.
    """
    calls = {token.text.lower() for token, following in pairwise(tokens) if following.token_type is TokenType.L_PAREN}
    quotes_names = "time_bucket" in calls or (calls & {"tumble", "hop"} and "descriptor" not in calls)
    plain = []
    for token in tokens:
        if is_word(token, "SESSION"):
            plain.append(replaced(token, TokenType.VAR, token.text))
        elif quotes_names and token.token_type is TokenType.STRING and source.raw(token).startswith('"'):
            plain.append(replaced(token, TokenType.IDENTIFIER, token.text))
        else:
            plain.append(token)
    return plain


def _alias(tokens: Sequence[Token], index: int) -> tuple[str | None, int]:
    """Return the name of the derived table, if it has one, and where the text goes on."""
    if index < len(tokens) and tokens[index].token_type is TokenType.ALIAS:
        index += 1
        return (tokens[index].text, index + 1) if index < len(tokens) and is_name(tokens[index]) else (None, index)
    if index < len(tokens) and tokens[index].token_type in (TokenType.VAR, TokenType.IDENTIFIER):
        return tokens[index].text, index + 1
    return None, index


def _joins(token: Token) -> bool:
    words = ("COMMA", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI")
    return token.token_type in tuple(TokenType[word] for word in words)


def _read(
    tree: exp.Select, clause: FromClause, alias: str | None, source: SourceText, own: Collection[str]
) -> DerivedTable:
    place = Span.of(clause.rest[:1])
    for key, value in tree.args.items():
        if value and key not in ("kind", "expressions", "where"):
            raise source.error("the derived table does more than select and filter", place, _ONLY)
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower() in {*FUNCTIONS, *EQUIVALENTS, *WITHIN_GROUP, *own}:
            raise source.error(f"the derived table aggregates with {call.name.lower()}()", span_of(call, place), _ONLY)
    columns: dict[str, exp.Expr] = {}
    has_star = False
    for item in tree.expressions:
        if isinstance(item, exp.Star):
            has_star = True
            continue
        node = item.this if isinstance(item, exp.Alias) else item
        name = item.alias if isinstance(item, exp.Alias) else spark_name(item, ())
        if isinstance(item, exp.Anonymous) and item.name.lower() in WINDOW_FUNCTIONS:
            name = item.name
        if name:
            if name.lower() in columns:
                raise source.error(
                    f"two columns of the derived table are called '{name}'",
                    span_of(item, place),
                    "give one of them another name with AS",
                )
            columns[name.lower()] = node
    where = tree.args.get("where")
    return DerivedTable(alias, columns, has_star, None if where is None else where.this)


def _write_out(tree: exp.Select, table: DerivedTable, place: Span, source: SourceText) -> None:
    """Replace the names of the derived table in a tree by what they stand for; items keep their names."""
    aliases = {item.alias.lower() for item in tree.expressions if isinstance(item, exp.Alias)}
    for item in tree.expressions:
        name = None if isinstance(item, exp.Alias | exp.Star) else spark_name(item, _qualifiers(table))
        if name:
            aliased = exp.Alias(this=item.copy(), alias=exp.Identifier(this=name, quoted=True))
            aliased.args["alias"].meta.update(item.meta)
            item.replace(aliased)
    for column in list(tree.find_all(exp.Column)):
        parts = [part for part in column.parts if isinstance(part, exp.Identifier)]
        if len(parts) != len(column.parts):
            continue
        if len(parts) > 1 and parts[0].name.lower() in _qualifiers(table):
            parts = parts[1:]
        name = parts[0].name.lower()
        if name in aliases and len(parts) == 1 and column.find_ancestor(exp.Order, exp.Having) is not None:
            continue
        if name in table.columns:
            meant: exp.Expr = exp.Paren(this=table.columns[name].copy())
            if len(parts) > 1 or isinstance(table.columns[name], exp.Column | exp.Anonymous):
                meant = meant.this
        elif table.has_star:
            meant = exp.Column(this=parts[0].copy())
        elif name in aliases or name in WINDOW_FUNCTIONS:
            continue
        else:
            hint = near_names(parts[0].name, list(table.columns))
            raise source.error(f"the derived table has no column '{parts[0].name}'", span_of(column, place), hint)
        for part in parts[1:]:
            meant = _field(meant, part)
        column.replace(meant)
    if table.where is not None:
        own = tree.args.get("where")
        both: exp.Expr = exp.Paren(this=table.where.copy())
        both = both if own is None else exp.And(this=both, expression=exp.Paren(this=own.this))
        tree.set("where", exp.Where(this=both))


def _qualifiers(table: DerivedTable) -> tuple[str, ...]:
    return () if table.alias is None else (table.alias.lower(),)


def _field(value: exp.Expr, part: exp.Identifier) -> exp.Expr:
    """Return a field of a value: of a column under a longer name, of anything else after a dot."""
    if isinstance(value, exp.Column) and value.args.get("catalog") is None:
        parts = [*value.parts, part]
        keys = ("this", "table", "db", "catalog")
        return exp.Column(**{key: each.copy() for key, each in zip(keys, reversed(parts), strict=False)})
    return exp.Dot(this=value, expression=part.copy())
