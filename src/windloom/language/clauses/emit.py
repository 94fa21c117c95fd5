"""The clause EMIT at the end of a query: `EMIT FINAL`, `EMIT CHANGES`, `EMIT EMPTY`, `EMIT EARLY EVERY 10 seconds`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import Token, TokenType

from windloom.language.sql.tokens import CLOSE, OPEN, SourceText, Span, is_name, is_word, without_semicolons
from windloom.language.windows.syntax import read_duration
from windloom.model.clauses import ADDED_COLUMNS, CHANGE, VALID_UNTIL, WINDOW_EDGES, Emission, Emits
from windloom.model.query import Query
from windloom.model.rows import Reports, RowQuery
from windloom.model.time import format_duration
from windloom.model.windows.window import MAX_TICKS

_FORMS = "write EMIT FINAL, EMIT CHANGES, EMIT EMPTY or EMIT EARLY EVERY 10 seconds"
_EARLY_FORM = "say how often, in the time of events: EMIT EARLY EVERY 10 seconds"
#: Words of other systems for reports of changes, and for when they come.
_OF_CHANGES = ("ON", "STREAM", "AFTER", "CHANGELOG", "DELTA", "DELTAS", "UPSERT", "RETRACT", "UPDATE", "UPDATES")
#: What RisingWave writes after EMIT for what is our EMIT FINAL.
_ON_CLOSE = ["ON", "WINDOW", "CLOSE"]
#: Tokens after which the word EMIT is a name.
_NAMING = ("AS", "FROM", "BY", "SELECT", "AND", "OR", "NOT", "JOIN", "HAVING", "WHERE", "ON", "DISTINCT")


@dataclass(frozen=True, slots=True)
class EmitClause:
    """The emission that EMIT asks for, and its place."""

    emission: Emission
    at: Span


def cut_emit(tokens: Sequence[Token], source: SourceText) -> tuple[Sequence[Token], EmitClause | None]:
    """Return the query without its last clause, and that clause, if it has one."""
    depth, query = 0, without_semicolons(tokens)
    for index in range(len(query) - 2, 0, -1):
        depth += (query[index + 1].token_type in CLOSE) - (query[index + 1].token_type in OPEN)
        before, after = query[index - 1], query[index + 1 :]
        is_a_name = is_word(before, *_NAMING) or before.token_type in (TokenType.COMMA, TokenType.DOT)
        is_known = is_word(after[0], *(kind.upper() for kind in Emits), *_OF_CHANGES)
        is_complete = is_known or (len(after) == 1 and is_name(after[0]))
        if depth == 0 and is_word(query[index], "EMIT") and [each.text.upper() for each in after] == _ON_CLOSE:
            return tokens[:index], EmitClause(Emission(), Span.of(query[index:]))
        if depth == 0 and is_word(query[index], "EMIT") and not is_a_name and is_complete:
            return tokens[:index], _read(query[index:], source)
    return tokens, None


def _read(tokens: Sequence[Token], source: SourceText) -> EmitClause:
    word, rest = tokens[1], tokens[2:]
    kind = next((emits for emits in Emits if is_word(word, emits.upper())), None)
    if kind is None:
        said = " ".join(token.text.upper() for token in tokens)
        hint = _FORMS
        if is_word(word, *_OF_CHANGES):
            hint = "write EMIT CHANGES for inserts, updates and deletes, EMIT EARLY EVERY 10 seconds for early rows"
        raise source.error(f"{said} is not known", word, hint)
    if kind is Emits.EARLY:
        if not rest:
            raise source.error("EVERY is missing after EMIT EARLY", word, _EARLY_FORM)
        if not is_word(rest[0], "EVERY"):
            raise source.error(f"unexpected '{source.raw(rest[0])}' after EMIT EARLY", rest[0], _EARLY_FORM)
        if len(rest) == 1:
            raise source.error("a duration is missing after EVERY", rest[0], _EARLY_FORM)
        written = read_duration(rest[1:], source)
        ticks = written.ticks(source)
        if not 0 < ticks <= MAX_TICKS:
            wrong = "positive" if ticks <= 0 else f"at most {format_duration(MAX_TICKS)}"
            message = f"the time between two reports must be {wrong}, not {format_duration(ticks)}"
            raise source.error(message, written.at, _EARLY_FORM)
        return EmitClause(Emission(kind, ticks), Span.of(tokens))
    if rest:
        raise source.error(f"unexpected '{source.raw(rest[0])}' after EMIT {kind.upper()}", rest[0], _FORMS)
    return EmitClause(Emission(kind), Span.of(tokens))


def with_emission(query: Query, clause: EmitClause | None, source: SourceText) -> Query:
    """Return the query with its clause; raise an error if this query cannot have it."""
    if clause is None or clause.emission.kind is Emits.FINAL:
        return query
    kind = clause.emission.kind
    named = f"EMIT {kind.upper()}"
    if query.rows is not None and query.rows.columns:
        return _with_row_changes(query, query.rows, clause, source)
    if (obstacle := query.window.emission_obstacles.get(kind)) is not None:
        hint = "use windows of time, [RANGE 1 hour SLIDE 1 minute], or leave EMIT out"
        raise source.error(f"{named} is not for {query.window.plural}", clause.at, hint, fact=obstacle)
    if kind is Emits.EARLY and query.rows is not None:
        raise source.error(
            f"{named} is not for aggregates over such a join",
            clause.at,
            "join by equal columns of windows that end together, or leave EMIT out",
            fact="they are made from kept tuples, when a window is closed",
        )
    computed = [output.expression for output in query.outputs if output.expression is not None]
    computed += [] if query.having is None else [query.having]
    if kind is Emits.CHANGES and any(set(WINDOW_EDGES) & set(expression.columns) for expression in computed):
        hint = "select window_start and window_end themselves, and compute with them where the rows are read"
        fact = "a value that is computed from the window changes with every window"
        raise source.error(f"{named} cannot compare rows that compute with their window", clause.at, hint, fact=fact)
    names = [*(grouping.name for grouping in query.group_by), *(output.name for output in query.outputs)]
    names += [shown.name for shown in query.presentation.columns or ()]
    _check_added(ADDED_COLUMNS.get(kind, ()), names, clause, source)
    return replace(query, emission=clause.emission)


def _with_row_changes(query: Query, rows: RowQuery, clause: EmitClause, source: SourceText) -> Query:
    """Return a query of rows with EMIT CHANGES; rows whose end is known at their start are reported once, with it."""
    if clause.emission.kind is not Emits.CHANGES:
        hint = "write EMIT CHANGES for rows that come and go, or leave EMIT out"
        named = f"EMIT {clause.emission.kind.upper()}"
        raise source.error(f"{named} is about aggregates, and this query reports rows", clause.at, hint)
    if rows.within:  # pairs never go
        return replace(query, emission=clause.emission)
    if rows.reports is not Reports.STANDING:
        word = "ISTREAM" if rows.reports is Reports.ENTERING else "DSTREAM"
        hint = f"leave {word} out: EMIT CHANGES reports what enters, and when it leaves"
        raise source.error(f"EMIT CHANGES cannot stand with {word}", clause.at, hint)
    added = VALID_UNTIL if rows.has_lifetimes else CHANGE
    _check_added((added,), [row_column.name for row_column in rows.columns], clause, source)
    if rows.has_lifetimes:
        rows = replace(rows, reports=Reports.ENTERING, tells_end=True)
    return replace(query, source=rows, emission=clause.emission)


def _check_added(added: Sequence[str], names: Sequence[str], clause: EmitClause, source: SourceText) -> None:
    for column in added:
        if column in (name.lower() for name in names):
            message = f"EMIT {clause.emission.kind.upper()} adds a column '{column}'"
            raise source.error(message, clause.at, "give yours another name with AS")
