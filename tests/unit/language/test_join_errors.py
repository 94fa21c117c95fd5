"""What a join cannot say is refused before anything runs, at its place in the text, with what to write instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.order_streams import FROM, STREAMS, under_caret
from windloom.errors import QueryError
from windloom.language import parse_query
from windloom.model import Rows

HOUR = "FROM orders [RANGE 1 hour SLIDE 5 minutes] o"


def refused(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse_query("q", text.replace("…", FROM), STREAMS)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    ("text", "message", "caret", "hint"),
    [
        (
            f"SELECT count(*) {HOUR}, clicks [RANGE 1 h] c, visits [RANGE 1 h] v"
            " WHERE o.user = c.user AND c.url = v.url AND v.kind = o.kind",
            "the join is cyclic: 'o', 'c', 'v' are linked in a circle",
            "kind",
            "leave one out",
        ),
        (
            f"SELECT count(*) {HOUR} LEFT JOIN clicks [RANGE 1 hour] c ON o.price < c.cost",
            "the LEFT JOIN has no key",
            "LEFT",
            "add an equality",
        ),
        (
            f"SELECT count(*) {HOUR} JOIN clicks [RANGE 1 hour] c ON o.price < c.cost",
            "'c' is joined without a key: every tuple would be paired with every other",
            "clicks",
            "add an equality",
        ),
        (
            "SELECT median(o.price + c.cost) …",
            "quantile() of values that several streams make is not known from each stream alone",
            "o",
            "only sum, avg, count, min and max",
        ),
        (
            "SELECT var_pop(o.price * c.cost) …",
            "var_pop() of values that several streams make is not known from each stream alone",
            "o",
            "only sum, avg, count, min and max",
        ),
        (
            "SELECT sum(o.qty + o.price / c.cost) …",
            "a division by another stream's values is no product of what is known of each stream",
            "o",
            "use +, - and * between streams",
        ),
        (
            "SELECT sum(o.price * greatest(o.qty, c.seen)) …",
            "this part is no sum of products of parts over one stream each",
            "greatest",
            "use +, - and * between streams",
        ),
        ("SELECT max(o.price / c.cost) …", "its extrema are not known from those of each stream", "o", "a - b"),
        ("SELECT max_by(o.kind, c.cost) …", "its arguments belong to two streams", "max_by", "from one stream"),
        (
            "SELECT count(*) FILTER (WHERE o.price > c.cost) …",
            "this condition is about several streams at once",
            "price",
            "into ON",
        ),
        (
            "SELECT concat(o.kind, c.kind) AS k, count(*) … GROUP BY k",
            "cannot group by 'concat(o.kind, c.kind)': it is made of columns of 'o' and 'c'",
            "k",
            "parts of each stream",
        ),
        (
            f"SELECT sum(coalesce(c.cost, 0)) {HOUR} LEFT JOIN clicks [RANGE 1 hour] c USING (user)",
            "this may be a value even in a row without a match of 'c'",
            "coalesce",
            "coalesce(sum(c.x), 0)",
        ),
        (
            f"SELECT count(*) {HOUR} LEFT JOIN clicks [RANGE 1 hour] c USING (user) WHERE coalesce(c.cost, 0) = 0",
            "rows without a match of 'c' may satisfy this condition",
            "coalesce",
            "move it into ON",
        ),
    ],
)
def test_what_partials_cannot_answer_is_joined_tuple_by_tuple_or_else_refused_with_the_reason(
    text: str, message: str, caret: str, hint: str
) -> None:
    assert isinstance(parse_query("q", text.replace("…", FROM), STREAMS).source, Rows)
    # Tuples of a landmark window would have to be kept for ever, so that only partials can answer it.
    error = refused(text.replace("…", FROM).replace("[RANGE 1 hour SLIDE", "[LANDMARK SLIDE"))
    assert message in error.message
    assert under_caret(error) == caret
    assert hint in error.hint


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT count(*) {HOUR}, clicks [RANGE 30 minutes] c",
        f"SELECT count(*) {HOUR} CROSS JOIN clicks [RANGE 30 minutes] c",
        f"SELECT count(*) {HOUR} JOIN clicks [RANGE 30 minutes] c ON o.price < 5 AND c.cost > 3",
        f"SELECT count(*) {HOUR}, clicks [RANGE 30 minutes] c, visits [RANGE 1 h] v WHERE o.user = v.user",
    ],
)
def test_a_join_without_any_condition_is_refused_with_the_pairs_that_are_expected(text: str) -> None:
    rates = {"orders": 2.0, "clicks": 10.0, "visits": 1.0}
    streams = {name: replace(stream, events_per_second=rates[name]) for name, stream in STREAMS.items()}
    with pytest.raises(QueryError) as caught:
        parse_query("q", text, streams)
    assert "'c' is joined without a key: every tuple would be paired with every other" in caught.value.message
    assert "about 129,600,000 pairs per window are expected" in caught.value.detail  # 7,200 · 18,000


def test_a_cross_join_may_have_its_key_in_where() -> None:
    crossed = f"SELECT count(*) {HOUR} CROSS JOIN clicks [RANGE 30 minutes] c WHERE o.user = c.user"
    assert parse_query("q", crossed, STREAMS).source == parse_query("q", f"SELECT count(*) {FROM}", STREAMS).source
