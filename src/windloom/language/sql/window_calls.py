"""Windows as functions in a syntax tree, in the spelling of several systems, all read as Spark's window().

`window(ts, '1 hour').start` is an edge of the window. Flink's group windows are `TUMBLE(ts, i)`, `HOP(ts, slide, size)`
and `SESSION(ts, i)` in GROUP BY, with `TUMBLE_START(ts, i)` and so on; DuckDB's `time_bucket(i, ts)` is the start of a
tumbling window.
"""

from __future__ import annotations

import re

from sqlglot import exp

from windloom.errors import WindloomError
from windloom.language.sql.syntax import span_of
from windloom.language.sql.tokens import SourceText, Span
from windloom.model.time import format_duration, parse_duration
from windloom.model.windows import WINDOW_FUNCTIONS

#: The time from which DuckDB counts buckets of fixed length, 2000-01-03, a Monday.
_DUCKDB_ORIGIN = 946_857_600_000_000
_GROUP_WINDOW = re.compile(r"(tumble|hop|session)(?:_(start|end|rowtime|proctime))?")
#: DuckDB's names of aggregates that Spark calls otherwise; they skip tuples whose first argument is NULL.
_PICKS = {"arg_max": "max_by", "arg_min": "min_by"}
#: What the last instant of a window lacks to its end in Flink.
FLINK_INSTANT = "INTERVAL '1' MILLISECOND"


def is_window_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in WINDOW_FUNCTIONS


def with_spark_windows(tree: exp.Select, source: SourceText, place: Span) -> tuple[exp.Anonymous, ...]:
    """Write windows and their edges in a tree as Spark does.

    Returns the calls of which only an edge is left; they must be the window of the query.
    """
    calls: list[exp.Anonymous] = []
    for call in list(tree.find_all(exp.Anonymous)):
        name = call.name.lower()
        if name in _PICKS:
            _pick(call, _PICKS[name])
        elif name == "time_bucket":
            calls += _bucket(call, source, place)
        elif (group := _GROUP_WINDOW.fullmatch(name)) is not None and call.expressions:
            calls += _group_window(call, group[1], group[2], source, place)
    for dot in list(tree.find_all(exp.Dot)):
        call, edge = dot.this, dot.expression
        if isinstance(call, exp.Anonymous) and is_window_call(call) and isinstance(edge, exp.Identifier):
            dot.replace(_edge(call, edge.copy()))
            calls.append(call)
    return tuple(calls)


def last_instant(edge: exp.Expr, less: str) -> exp.Expr:
    """Return the last instant of a window that ends at this edge."""
    return exp.Paren(this=exp.Sub(this=edge, expression=exp.Literal(this=less, is_string=False)))


def _edge(call: exp.Anonymous, edge: exp.Identifier) -> exp.Column:
    column = exp.Column(this=edge, table=exp.Identifier(this=call.name.lower()))
    column.meta.update(call.meta)
    return column


def named(node: exp.Expr, new: exp.Expr, name: str) -> None:
    """Replace a node; an item of the select list without an alias keeps its name."""
    if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
        alias = exp.Identifier(this=name, quoted=True)
        alias.meta.update(node.meta)
        new = exp.Alias(this=new, alias=alias)
    node.replace(new)


def _group_window(
    call: exp.Anonymous, kind: str, part: str | None, source: SourceText, place: Span
) -> list[exp.Anonymous]:
    """Replace a group window of Flink, or an edge of one."""
    time, *lengths = call.expressions
    wanted = 2 if kind == "hop" else 1
    if len(lengths) != wanted or part == "proctime":
        hint = "write TUMBLE(ts, INTERVAL '10' MINUTE), HOP(ts, INTERVAL '1' MINUTE, INTERVAL '10' MINUTE)"
        what = f"{call.name}() is about the clock" if part == "proctime" else f"{call.name}() has other arguments"
        raise source.error(what, span_of(call, place), f"{hint} or SESSION(ts, INTERVAL '5' MINUTE)")
    lengths = lengths[::-1]  # Spark has the length first
    window = exp.Anonymous(
        this="session_window" if kind == "session" else "window", expressions=[each.copy() for each in (time, *lengths)]
    )
    window.meta.update(call.meta)
    if part is None:
        call.replace(window)
        return []
    edge: exp.Expr = _edge(window, exp.Identifier(this="start" if part == "start" else "end"))
    named(call, last_instant(edge, FLINK_INSTANT) if part == "rowtime" else edge, call.name)
    return [window]


def _pick(call: exp.Anonymous, name: str) -> None:
    """Replace DuckDB's arg_max(x, y) by max_by(x, y) of the tuples whose x is not NULL."""
    pick = exp.Anonymous(this=name, expressions=[each.copy() for each in call.expressions])
    pick.meta.update(call.meta)
    if not call.expressions:
        call.replace(pick)
        return
    is_there: exp.Expr = exp.Not(this=exp.Is(this=exp.Paren(this=call.expressions[0].copy()), expression=exp.Null()))
    if isinstance(call.parent, exp.Filter):
        where = call.parent.expression
        where.set("this", exp.And(this=exp.Paren(this=where.this.copy()), expression=is_there))
        call.replace(pick)
    else:
        call.replace(exp.Filter(this=pick, expression=exp.Where(this=is_there)))


def _bucket(call: exp.Anonymous, source: SourceText, place: Span) -> list[exp.Anonymous]:
    """Replace DuckDB's time_bucket(width, time [, offset or origin]) by the start of a tumbling window."""
    hint = "write time_bucket(INTERVAL '10 minutes', ts), or with an offset time_bucket(INTERVAL …, ts, INTERVAL …)"
    if not 2 <= len(call.expressions) <= 3:
        raise source.error("time_bucket() takes a width, a time and an offset", span_of(call, place), hint)
    width, time, *offset = call.expressions
    ticks = [_ticks(each, source, place, hint) for each in (width, *offset)]
    if ticks[0] <= 0:
        raise source.error("the width of time_bucket() must be positive", span_of(call, place), hint)
    shift = (_DUCKDB_ORIGIN + sum(ticks[1:])) % ticks[0]
    if not offset and shift:
        length = format_duration(ticks[0])
        raise source.error(
            f"buckets of {length} begin elsewhere in DuckDB than in Spark",
            span_of(width, place),
            "DuckDB counts them from 2000-01-03: give it an offset, time_bucket(…, ts, INTERVAL '0 days'), for its"
            f" buckets; Spark counts them from 1970-01-01: window(ts, '{length}')",
        )
    texts = [f"'{ticks[0]} microseconds'", f"'{ticks[0]} microseconds'", f"'{shift} microseconds'"]
    durations = [exp.Literal(this=text, is_string=True) for text in texts]
    for duration in durations:
        duration.meta.update(call.meta)
    window = exp.Anonymous(this="window", expressions=[time.copy(), *durations])
    window.meta.update(call.meta)
    named(call, _edge(window, exp.Identifier(this="start")), "time_bucket")
    return [window]


def _ticks(node: exp.Expr, source: SourceText, place: Span, hint: str) -> int:
    text = str(node.this) if isinstance(node, exp.Literal) else ""
    if not text.startswith("INTERVAL "):
        raise source.error("an INTERVAL is expected here", span_of(node, place), hint)
    try:
        return parse_duration(text.replace("'", ""))
    except WindloomError as error:
        raise source.wrap(error, span_of(node, place)) from None
