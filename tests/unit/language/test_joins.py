"""Joins: what is asked of each side, how sides are linked, and how components are folded."""

from __future__ import annotations

import pytest

from support.order_streams import FROM, STREAMS
from windloom.language.select import parse_query
from windloom.model import Join, JoinKind, Query, TimeWindow
from windloom.model.join import Corner, KeyPair, Product, SideComponent, SumOfProducts

MINUTE = 60_000_000


def read(text: str) -> Query:
    """Reads a query; `…` stands for a join of orders and clicks by user."""
    return parse_query("q", text.replace("…", FROM), STREAMS)


def joined(text: str) -> Join:
    join = read(text).join
    assert join is not None
    return join


def asked(join: Join, side: int) -> list[str]:
    return [str(component) for component in join.sides[side].components]


# ---- sides and links ---------------------------------------------------------------------------------------------


def test_a_join_of_two_streams_becomes_two_sides_a_link_and_folds() -> None:
    query = read(
        "SELECT o.region, sum(c.cost) AS spent, count(*) AS pairs …"
        " WHERE c.kind = 'buy' GROUP BY o.region HAVING pairs > 1"
    )
    join = query.join
    assert join is not None
    assert query.streams == ("orders", "clicks")
    assert join.relation == "orders AS o, clicks AS c"
    assert query.where is None
    assert query.predicate is None
    orders, clicks = join.sides
    assert (orders.alias, orders.where, [grouping.sql for grouping in orders.group_by]) == (
        "o",
        None,
        ["region", "user"],
    )
    assert (clicks.alias, [grouping.sql for grouping in clicks.group_by]) == ("c", ["user"])
    assert clicks.where is not None
    assert clicks.where.sql == "kind = 'buy'"
    assert clicks.predicate is not None
    assert clicks.predicate.sql == "kind = 'buy'"
    assert asked(join, 0) == ["count(*)"]
    assert asked(join, 1) == ["count(*)", "sum(cost)"]
    (link,) = join.links
    assert (link.parent, link.child, link.kind, link.residual) == (0, 1, JoinKind.INNER, None)
    assert link.keys == (KeyPair(1, 0),)
    assert join.groups == ((0, 0),)
    assert [str(component) for component in query.components] == ["sum(c.cost)", "count(*)"]
    assert join.folded == (SideComponent(1, 1, (0, 0)), SumOfProducts((Product(1, (0, 0)),)))
    assert [grouping.name for grouping in query.group_by] == ["region"]
    assert query.having is not None
    assert query.having.sql == "__a1 > 1"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM orders [RANGE 1 h SLIDE 5 m] o, clicks [RANGE 30 m] c WHERE o.user = c.user",
        "SELECT count(*) FROM orders [RANGE 1 h SLIDE 5 m] o INNER JOIN clicks c [RANGE 30 m] USING (user)",
        "SELECT count(*) FROM orders [RANGE 1 h SLIDE 5 m] AS o JOIN clicks [RANGE 30 m] AS c WHERE c.user = o.user",
        "SELECT count(*) FROM orders [RANGE 1 h SLIDE 5 m] o JOIN clicks [RANGE 30 m] c ON (c.user) = orders.user",
        "SELECT count(*) FROM orders [RANGE 1 h SLIDE 5 m] o JOIN clicks [RANGE 30 m] c ON O.USER = C.User AND TRUE",
    ],
)
def test_one_join_can_be_written_in_many_ways(text: str) -> None:
    assert read(text).source == read("SELECT count(*) …").source


def test_a_name_without_a_qualifier_means_the_only_stream_that_has_it() -> None:
    query = read("SELECT region, sum(cost), sum(price) … WHERE qty > 1 AND url LIKE 'a%' GROUP BY region")
    assert [str(aggregate) for aggregate in query.aggregates] == ["sum(c.cost)", "sum(o.price)"]
    join = query.join
    assert join is not None
    assert [str(side.where) for side in join.sides] == ["qty > 1", "url LIKE 'a%'"]


def test_a_stream_can_be_joined_with_itself() -> None:
    join = joined(
        "SELECT a.user, count(*) FROM orders [TUMBLE 1 hour] a JOIN orders [RANGE 1 day] b ON a.user = b.user"
        " WHERE a.qty < 5 GROUP BY a.user"
    )
    assert join.streams == ("orders",)
    assert [side.alias for side in join.sides] == ["a", "b"]
    assert [str(side.where) for side in join.sides] == ["qty < 5", "None"]


def test_equalities_make_classes_and_what_they_imply_is_not_asked_twice() -> None:
    join = joined(
        "SELECT count(*) FROM orders [TUMBLE 1 h] o, clicks [RANGE 1 h] c, visits [RANGE 1 h] v"
        " WHERE o.user = c.user AND c.user = v.user AND v.user = o.user AND c.kind = o.user AND c.url = v.url"
    )
    assert [(link.parent, link.child, len(link.keys)) for link in join.links] == [(0, 1, 1), (1, 2, 2)]
    assert str(join.sides[1].where) == "user = kind"


def test_keys_of_different_width_are_compared_in_the_wider_type() -> None:
    join = joined("SELECT count(*) FROM orders [TUMBLE 1 h] o JOIN clicks [RANGE 1 h] c ON o.shop = c.page")
    assert [side.group_by[0].sql for side in join.sides] == ["shop", "CAST(page AS BIGINT)"]


def test_other_conditions_on_two_sides_are_residual() -> None:
    join = joined("SELECT count(*) … WHERE o.price > c.cost * 2 AND (c.seen IS NULL OR o.qty = 1)")
    assert [grouping.sql for grouping in join.sides[0].group_by] == ["price", "qty = 1", "user"]
    assert [grouping.sql for grouping in join.sides[1].group_by] == ["cost * 2", "seen IS NULL", "user"]
    residual = join.links[0].residual
    assert residual is not None
    assert residual.sql == "__p0 > __c0 AND (__c1 OR __p1)"
    assert residual.tree is not None


# ---- folds -------------------------------------------------------------------------------------------------------


def test_sums_of_products_are_products_of_sums_where_nothing_is_null() -> None:
    join = joined("SELECT sum(o.price * c.cost), avg(o.qty - c.seen) …")
    assert asked(join, 0) == ["count(*)", "sum(price)", "count(price)", "sum(qty)", "count(qty)"]
    assert asked(join, 1) == ["count(*)", "sum(cost)", "count(cost)", "count(seen)", "sum(seen)"]
    counted = Product(1, (4, 3))
    assert join.folded == (
        SumOfProducts((Product(1, (1, 1)),), Product(1, (2, 2))),
        SumOfProducts((Product(1, (3, 3)), Product(-1, (4, 4))), counted),
        SumOfProducts((counted,)),
    )


def test_every_factor_is_guarded_by_the_whole_expression() -> None:
    join = joined("SELECT sum(o.qty * c.seen + o.shop) …")
    assert asked(join, 0)[1:] == [
        "sum(qty) FILTER (WHERE shop IS NOT NULL)",
        "sum(shop) FILTER (WHERE qty IS NOT NULL)",
        "count(*) FILTER (WHERE qty IS NOT NULL AND shop IS NOT NULL)",
    ]
    assert asked(join, 1)[1:] == ["sum(seen)", "count(seen)"]


@pytest.mark.parametrize(
    ("call", "orders", "clicks"),
    [
        ("sum(o.qty * c.cost)", "sum(CAST(qty AS DOUBLE))", "sum(cost)"),
        ("sum(o.qty * c.seen * o.qty)", "sum(CAST(qty AS BIGINT) * qty)", "sum(seen)"),
        ("sum(2 * o.price * c.cost)", "sum(2 * price)", "sum(cost)"),
        ("sum(o.fee * c.tax)", "sum(fee)", "sum(tax)"),
        ("sum(o.qty * c.tax)", "sum(CAST(qty AS DECIMAL(10, 0)))", "sum(tax)"),
        ("sum(o.fee * c.cost)", "sum(CAST(fee AS DOUBLE))", "sum(cost)"),
        ("sum(CAST(o.qty * c.seen AS DOUBLE))", "sum(CAST(qty AS DOUBLE))", "sum(CAST(seen AS DOUBLE))"),
        ("sum(-(o.price) * (c.cost + 1))", "sum(-price)", "sum(cost + 1)"),
    ],
)
def test_factors_have_types_whose_products_are_of_the_whole(call: str, orders: str, clicks: str) -> None:
    join = joined(f"SELECT {call} …")
    assert (asked(join, 0)[1], asked(join, 1)[1]) == (orders, clicks)


def test_scales_of_decimals_add_up_in_every_product() -> None:
    join = joined("SELECT sum(o.fee + c.tax) …")
    assert asked(join, 0)[1:3] == ["sum(CAST(fee AS DECIMAL(12, 4)))", "count(fee)"]
    assert "sum(tax)" in asked(join, 1)


def test_conditions_of_a_filter_go_to_their_sides() -> None:
    join = joined("SELECT max(o.price) FILTER (WHERE o.qty > 1 AND c.seen = 2 AND c.kind = 'a') …")
    assert asked(join, 0) == ["count(*)", "max(price) FILTER (WHERE qty > 1)"]
    assert asked(join, 1) == ["count(*)", "count(*) FILTER (WHERE seen = 2 AND kind = 'a')"]
    assert join.folded == (SideComponent(0, 1, (0, 1)),)


def test_extrema_of_two_sides_are_found_at_their_corners() -> None:
    join = joined("SELECT min(o.qty - c.seen), max(o.qty * c.cost) …")
    assert asked(join, 0)[1:] == ["min(qty)", "max(qty)", "min(CAST(qty AS DOUBLE))", "max(CAST(qty AS DOUBLE))"]
    assert join.folded == (
        Corner("-", (0, 1, 2), (1, 1, 2), (0, 0)),
        Corner("*", (0, 3, 4), (1, 3, 4), (0, 0)),
    )


@pytest.mark.parametrize(
    "call",
    [
        "stddev(c.cost)",
        "bool_or(o.qty > 1)",
        "last(c.url)",
        "max_by(c.url, c.cost)",
        "count(DISTINCT c.url)",
        "median(o.price)",
        "top(3, c.url)",
        "approx_count_distinct(c.url)",
        "approx_quantile(o.price, 0.9)",
        "bit_xor(o.shop)",
    ],
)
def test_every_aggregate_of_one_side_is_carried(call: str) -> None:
    (folded, *_) = joined(f"SELECT {call} …").folded
    assert isinstance(folded, SideComponent)


# ---- windows -----------------------------------------------------------------------------------------------------


def test_a_later_source_takes_slide_and_ends_of_the_first() -> None:
    join = joined(
        "SELECT count(*) FROM orders [RANGE 1 hour SLIDE 7 minutes OFFSET 1 minute] o"
        " JOIN clicks [RANGE 30 minutes] c USING (user)"
    )
    first, second = (side.window for side in join.sides)
    assert first == TimeWindow(60 * MINUTE, 7 * MINUTE, MINUTE)
    assert second == TimeWindow(30 * MINUTE, 7 * MINUTE, 3 * MINUTE)
    assert first.end_ticks == second.end_ticks
    assert join.window == first


# ---- EXISTS ------------------------------------------------------------------------------------------------------

EXISTS = "EXISTS (SELECT 1 FROM clicks [RANGE 30 minutes] c WHERE o.user = c.user)"
LOOKING = "SELECT count(*) FROM orders [RANGE 1 hour SLIDE 5 minutes] o"


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        (EXISTS, "SEMI"),
        (f"({EXISTS})", "SEMI"),
        (f"NOT {EXISTS}", "ANTI"),
        ("EXISTS (SELECT * FROM clicks [RANGE 30 minutes] AS c WHERE c.user = orders.user)", "SEMI"),
        ("NOT EXISTS (SELECT c.url FROM clicks [RANGE 30 minutes] c WHERE user = o.user)", "ANTI"),
    ],
)
def test_exists_is_a_semi_join_and_not_exists_an_anti_join(condition: str, kind: str) -> None:
    join = f"LEFT {kind} JOIN clicks [RANGE 30 minutes] c ON o.user = c.user"
    assert read(f"{LOOKING} WHERE {condition}").source == read(f"{LOOKING} {join}").source


def test_exists_stands_beside_other_conditions_and_names_mean_the_inner_stream_first() -> None:
    join = joined(
        f"{LOOKING} WHERE qty > 1 AND (NOT EXISTS (SELECT 1 FROM clicks [RANGE 5 minutes] c"
        " WHERE c.user = o.user AND kind = 'buy' AND cost < price) AND kind = 'x') GROUP BY kind"
    )
    assert [str(side.where) for side in join.sides] == ["qty > 1 AND kind = 'x'", "kind = 'buy'"]
    (link,) = join.links
    assert link.kind is JoinKind.ANTI
    assert str(link.residual) == "__c0 < __p1"
    assert join.groups == ((0, 0),)
    assert [grouping.sql for grouping in join.sides[0].group_by] == ["kind", "price", "user"]


def test_exists_may_look_for_a_join_and_several_may_be_asked() -> None:
    join = joined(
        f"{LOOKING} WHERE EXISTS (SELECT 1 FROM clicks [RANGE 5 minutes] c JOIN visits [RANGE 10 minutes] v USING (url)"
        " WHERE c.user = o.user AND v.seen > 3)"
        " AND NOT EXISTS (SELECT 1 FROM visits [RANGE 1 hour] w WHERE w.user = o.user) AND o.qty > 1"
    )
    assert [(link.parent, link.child, link.kind) for link in join.links] == [
        (0, 1, JoinKind.SEMI),
        (1, 2, JoinKind.INNER),
        (0, 3, JoinKind.ANTI),
    ]
    assert [str(side.where) for side in join.sides] == ["qty > 1", "None", "seen > 3", "None"]


def test_a_stream_can_be_looked_for_in_itself_and_unqualified_names_keep_their_meaning() -> None:
    join = joined(
        "SELECT region, sum(price) FROM orders [TUMBLE 1 hour] WHERE"
        " EXISTS (SELECT 1 FROM orders [RANGE 1 day] later WHERE later.user = orders.user AND price > 5)"
        " GROUP BY region"
    )
    assert [str(side.where) for side in join.sides] == ["None", "price > 5"]
    assert asked(join, 0) == ["count(*)", "sum(price)"]
    assert asked(join, 1) == ["count(*)"]
