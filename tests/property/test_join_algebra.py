"""A join taken apart gives what the join means: sides, links and folds against nested loops over pairs of tuples."""

from __future__ import annotations

import os

from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from support.drawing import examples
from support.join_algebra import Source, folded, meant, pairs
from windloom.errors import QueryError
from windloom.language.select import parse_query
from windloom.model import DataType, Query, Stream

#: More cases on request.
EXAMPLES = examples(int(os.environ.get("WINDLOOM_JOINS", "150")))
COLUMNS = ("k", "j", "x", "y")
STREAMS = {
    name: Stream(
        name, {"ts": DataType.parse("timestamp")} | {column: DataType.parse("bigint") for column in COLUMNS}, "ts"
    )
    for name in ("s0", "s1", "s2", "s3")
}
KINDS = ("JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "RIGHT JOIN")

_values = st.one_of(st.none(), st.integers(0, 2))
_rows = st.fixed_dictionaries(dict.fromkeys(COLUMNS, _values))
_bags = st.lists(_rows, max_size=5)


@st.composite
def _joins(draw: st.DrawFn) -> tuple[list[Source], list[str]]:
    """Sources with their conditions, and the aliases that can be named after them."""
    found, visible = [Source("t0", COLUMNS)], ["t0"]
    for number in range(1, draw(st.integers(2, 4))):
        alias, kind = f"t{number}", draw(st.sampled_from(KINDS))
        parent = draw(st.sampled_from(visible))
        sign = draw(st.sampled_from(["=", "=", "=", "<=>"]))
        parts = [f"{parent}.k {sign} {alias}.{draw(st.sampled_from(['k', 'k', 'j']))}"]
        parts += draw(
            st.lists(
                st.sampled_from(
                    [
                        f"{alias}.j = {parent}.j",
                        f"{alias}.j = {draw(st.sampled_from(visible))}.k",
                        f"{parent}.x < {alias}.y",
                        f"{parent}.x + {parent}.y <> {alias}.y - 1",
                        f"{alias}.x > 0",
                        f"{parent}.y IS NOT NULL",
                        f"({parent}.x = 1 OR {parent}.y > 0)",
                    ]
                ),
                max_size=2,
            )
        )
        found.append(Source(alias, COLUMNS, kind, " AND ".join(parts)))
        if "SEMI" not in kind and "ANTI" not in kind:
            visible.append(alias)
    return found, visible


def _conditions(visible: list[str]) -> st.SearchStrategy[str]:
    alias = st.sampled_from(visible)
    return st.one_of(
        alias.map(lambda t: f"{t}.x > 0"),
        alias.map(lambda t: f"{t}.x + {t}.y < 3"),
        alias.map(lambda t: f"{t}.y IS NOT NULL"),
        alias.map(lambda t: f"{t}.k IS NULL"),
        alias.map(lambda t: f"NOT ({t}.x = 1 AND {t}.y = 1)"),
        st.tuples(alias, alias).map(lambda two: f"{two[0]}.y = {two[1]}.y"),
        st.tuples(alias, alias).map(lambda two: f"{two[0]}.x <= {two[1]}.y"),
    )


def _factors(visible: list[str]) -> st.SearchStrategy[str]:
    alias = st.sampled_from(visible)
    return st.one_of(
        alias.map(lambda t: f"{t}.x"),
        alias.map(lambda t: f"{t}.y"),
        alias.map(lambda t: f"({t}.x - {t}.y)"),
        alias.map(lambda t: f"coalesce({t}.x, 1)"),
        st.integers(0, 3).map(str),
    )


def _polynomials(visible: list[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        _factors(visible),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda three: f"({' '.join(three)})"),
            inner.map(lambda text: f"(-{text})"),
        ),
        max_leaves=4,
    )


@st.composite
def _aggregates(draw: st.DrawFn, visible: list[str]) -> str:
    alias = st.sampled_from(visible)
    call = draw(
        st.one_of(
            st.just("count(*)"),
            st.tuples(st.sampled_from(["sum", "avg", "count"]), _polynomials(visible)).map(
                lambda two: f"{two[0]}({two[1]})"
            ),
            st.tuples(
                st.sampled_from(["min", "max"]), _factors(visible), st.sampled_from("+-*"), _factors(visible)
            ).map(lambda four: f"{four[0]}({four[1]} {four[2]} {four[3]})"),
            st.tuples(
                st.sampled_from(["sum", "min", "max", "stddev", "count", "median", "approx_count_distinct"]), alias
            ).map(lambda two: f"{two[0]}({two[1]}.x)"),
            alias.map(lambda t: f"count(DISTINCT {t}.x + {t}.y)"),
        )
    )
    conditions = draw(st.lists(_conditions(visible), max_size=2))
    return f"{call} FILTER (WHERE {' AND '.join(conditions)})" if conditions else call


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Query, list[Source], str]:
    sources, visible = draw(_joins())
    conditions = draw(st.lists(_conditions(visible), max_size=2))
    where = " AND ".join(conditions) or "TRUE"
    groups = draw(
        st.lists(st.sampled_from([f"{t}.{column}" for t in visible for column in ("k", "x")]), max_size=2, unique=True)
    )
    called = draw(st.lists(_aggregates(visible), min_size=1, max_size=3))
    items = [f"{group} AS g{i}" for i, group in enumerate(groups)] + [
        f"{call} AS a{i}" for i, call in enumerate(called)
    ]
    text = f"SELECT {', '.join(items)} FROM s0 [RANGE 1 hour SLIDE 5 minutes] t0"
    for number, source in enumerate(sources[1:], start=1):
        text += f" {source.kind} s{number} [RANGE 2 hours] {source.alias} ON {source.on}"
    text += f" WHERE {where}" + (f" GROUP BY {', '.join(groups)}" if groups else "")
    try:
        query = parse_query("q", text, STREAMS)
    except QueryError:
        reject()
    assume(query.join is not None)  # what does not decompose is joined row by row: tests/property/test_row_rounds.py
    return query, sources, where


@settings(max_examples=EXAMPLES, deadline=None)
@given(data=st.data(), case=_cases())
def test_sides_links_and_folds_give_what_a_join_means(
    data: st.DataObject, case: tuple[Query, list[Source], str]
) -> None:
    query, sources, where = case
    bags = {source.alias: data.draw(_bags, source.alias) for source in sources}
    expected = meant(query, pairs(sources, [bags[source.alias] for source in sources], where))
    assert query.join is not None
    found = folded(query, [bags[side.alias] for side in query.join.sides])
    assert found == expected, query.text
