"""Relations in the text of queries and catalogs: what they mean, and what is refused, with its place and its fix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from windloom.errors import QueryError
from windloom.language.catalog import parse_catalog
from windloom.language.select import parse_query
from windloom.model import DataType, JoinKind, Query, Relation, Stream, VersionWindow

W = "[RANGE 1 hour SLIDE 5 minutes]"


def columns(text: str) -> dict[str, DataType]:
    return {name: DataType.parse(kind) for name, kind in (column.split() for column in text.split(", "))}


SOURCES: dict[str, Stream] = {
    relation.name: relation
    for relation in (
        Stream("orders", columns("ts timestamp, user int, shop int, amount double"), time="ts"),
        Stream("clicks", columns("ts timestamp, user int, mail string"), time="ts"),
        Relation("person", columns("id int, city string, age int, mail string")),
        Relation("region", columns("city string, country string")),
        Relation("shop", columns("id int, kind string, owner int"), is_retroactive=False),
        Relation("owner", columns("id int, name string"), is_retroactive=False),
    )
}


def read(text: str) -> Query:
    return parse_query("q", text, SOURCES)


def enriched(query: Query) -> list[str]:
    return [stream.name for stream in query.enriched]


# ---- retroactive ----------------------------------------------------------------------------------------------------


def test_a_retroactive_relation_is_a_side_without_a_window() -> None:
    query = read(f"SELECT p.city, sum(o.amount) AS s FROM orders {W} o JOIN person p ON o.user = p.id GROUP BY p.city")
    assert query.join is not None
    assert [side.is_relation for side in query.join.sides] == [False, True]
    assert query.join.sides[1].window == VersionWindow()
    assert (query.streams, query.relations, str(query.window)) == (("orders",), ("person",), W)


@pytest.mark.parametrize(
    "source",
    [
        f"person p JOIN orders {W} o ON o.user = p.id",
        f"person p, orders {W} o WHERE o.user = p.id",
        f"region r JOIN person p ON r.city = p.city JOIN orders {W} o ON o.user = p.id",
        f"person p LEFT JOIN orders {W} o ON o.user = p.id WHERE o.amount > 1",
    ],
)
def test_the_stream_decides_about_windows_wherever_it_stands(source: str) -> None:
    join = read(f"SELECT count(*) AS n FROM {source}").join
    assert join is not None
    assert join.sides[0].source.stream == "orders"
    assert {link.kind for link in join.links} == {JoinKind.INNER}


def test_relations_may_hang_on_each_other_and_streams_on_them() -> None:
    text = f"""SELECT r.country, count(*) AS n FROM orders {W} o JOIN person p ON o.user = p.id
        LEFT JOIN region r ON p.city = r.city LEFT JOIN clicks [RANGE 9 s] c ON c.mail = p.mail GROUP BY r.country"""
    join = read(text).join
    assert join is not None
    assert [(link.parent, link.child, str(link.kind)) for link in join.links] == [
        (0, 1, "inner"),
        (1, 2, "left"),
        (1, 3, "left"),
    ]
    assert join.streams == ("orders", "clicks")


# ---- non-retroactive ------------------------------------------------------------------------------------------------


def test_a_stream_joined_with_a_non_retroactive_relation_is_one_stream_with_more_columns() -> None:
    query = read(f"SELECT k.kind, sum(amount) AS s FROM orders {W} o LEFT JOIN shop k ON k.id = o.shop GROUP BY k.kind")
    assert query.join is None
    assert enriched(query) == ["orders LEFT JOIN shop ON shop = `shop.id`"]
    assert (query.streams, query.relations) == (("orders",), ("shop",))
    assert [(grouping.name, grouping.expression.sql) for grouping in query.group_by] == [("kind", "`shop.kind`")]


@pytest.mark.parametrize(
    "source",
    [
        f"orders {W} o JOIN shop k ON o.shop = k.id",
        f"orders {W} o JOIN shop k ON k.id = o.shop",
        f"orders {W}, shop WHERE orders.shop = shop.id",
        f"shop k JOIN orders {W} o ON o.shop = k.id",
        f"shop k, orders {W} o WHERE k.id = o.shop",
    ],
)
def test_spellings_of_one_join_are_one_enriched_stream(source: str) -> None:
    query = read(f"SELECT count(*) AS n FROM {source}")
    assert enriched(query) == ["orders JOIN shop ON shop = `shop.id`"]
    assert query.where is None


def test_what_is_no_equality_with_the_stream_stays_a_condition() -> None:
    query = read(
        f"SELECT count(*) AS n FROM orders {W} o, shop k WHERE o.shop = k.id AND (k.kind = 'x' OR o.amount > 3)"
    )
    assert enriched(query) == ["orders JOIN shop ON shop = `shop.id`"]
    assert query.where is not None
    assert query.where.sql == "`shop.kind` = 'x' OR amount > 3"


def test_relations_may_follow_each_other_and_come_twice() -> None:
    text = (
        f"SELECT w.name FROM orders {W} o JOIN shop k ON o.shop = k.id JOIN owner w ON k.owner = w.id GROUP BY w.name"
    )
    assert enriched(read(text)) == ["orders JOIN shop ON shop = `shop.id` JOIN owner ON `shop.owner` = `owner.id`"]
    twice = (
        f"SELECT a.kind, b.kind AS other FROM orders {W} o JOIN shop a ON o.shop = a.id JOIN shop b ON o.user = b.id"
    )
    query = read(f"{twice} GROUP BY a.kind, b.kind")
    assert [grouping.expression.sql for grouping in query.group_by] == ["`shop.kind`", "`shop 2.kind`"]


def test_semi_anti_and_exists_only_look_into_a_relation() -> None:
    semi = read(f"SELECT count(*) AS n FROM orders {W} o LEFT SEMI JOIN shop k ON o.shop = k.id AND k.kind = 'x'")
    looked = "NOT EXISTS (SELECT 1 FROM shop k WHERE k.id = o.shop)"
    anti = read(f"SELECT count(*) AS n FROM orders {W} o WHERE {looked} AND amount > 1")
    assert enriched(semi) == ["orders LEFT SEMI JOIN shop ON `shop.kind` = 'x' AND shop = `shop.id`"]
    assert enriched(anti) == ["orders LEFT ANTI JOIN shop ON shop = `shop.id`"]
    assert list(anti.enriched[0].columns) == list(SOURCES["orders"].columns)
    assert anti.where is not None
    assert anti.where.sql == "amount > 1"


def test_using_and_window_calls_paste_in() -> None:
    source = "FROM orders o JOIN shop k ON o.shop = k.id"
    query = read(f"SELECT k.kind, count(*) AS n {source} GROUP BY k.kind, window(o.ts, '1 hour')")
    assert str(query.window) == "[TUMBLE 1 hour]"
    sources = {**SOURCES, "vip": Relation("vip", columns("user int, since int"), is_retroactive=False)}
    used = parse_query(
        "q", f"SELECT user, max(since) AS s FROM orders {W} JOIN vip USING (user) GROUP BY user", sources
    )
    assert used.enriched[0].name == "orders JOIN vip ON user = `vip.user`"
    assert used.group_by[0].expression.sql == "user"


def test_an_enriched_stream_is_a_side_of_joins_like_any_other() -> None:
    text = f"""SELECT k.kind, p.city, count(*) AS n FROM orders {W} o JOIN shop k ON o.shop = k.id
        JOIN person p ON k.owner = p.id JOIN clicks [RANGE 10 minutes] c ON c.user = o.user GROUP BY k.kind, p.city"""
    query = read(text)
    assert query.join is not None
    sides = {side.alias: side for side in query.join.sides}
    assert sides["o"].source.stream == "orders JOIN shop ON shop = `shop.id`"
    assert [key.sql for key in sides["o"].group_by] == ["`shop.kind`", "`shop.owner`", "user"]
    assert (query.streams, query.relations) == (("orders", "clicks"), ("shop", "person"))


# ---- catalogs -------------------------------------------------------------------------------------------------------

STREAM = "CREATE STREAM orders (ts TIMESTAMP, user INT) TIME ts;"


def test_a_catalog_declares_relations_of_both_kinds() -> None:
    text = f"""{STREAM}
        CREATE RELATION person (id INT, city STRING COMMENT 'where');
        create nonretroactive relation shop (id INT NOT NULL);
        CREATE QUERY n AS
          SELECT city, count(*) AS n FROM orders [TUMBLE 1 hour] JOIN person ON user = id GROUP BY city;"""
    catalog = parse_catalog(text)
    declared = [declaration.stream for declaration in catalog.relations]
    assert [(relation.name, isinstance(relation, Relation) and relation.is_retroactive) for relation in declared] == [
        ("person", True),
        ("shop", False),
    ]
    assert catalog.relations[1].line == 3
    (query,) = catalog.parse()
    assert query.relations == ("person",)


# ---- the window as Spark writes it -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "orders{} o JOIN person p ON o.user = p.id",
        "person p JOIN orders{} o ON o.user = p.id",
        "orders{} o JOIN shop p ON o.shop = p.id",
        "orders{} o JOIN person p ON o.user = p.id LEFT JOIN shop s ON s.id = o.shop",
        "orders{} o JOIN person p ON o.user = p.id JOIN region r ON r.city = p.city",
    ],
)
@pytest.mark.parametrize("call", ["window(o.ts, '1 hour', '5 minutes')", "window(ts, '1 hour', '5 minutes')"])
def test_window_in_group_by_means_the_bracket_after_the_only_stream(source: str, call: str) -> None:
    bracket = read(f"SELECT p.id, sum(amount) AS s FROM {source.format(' ' + W)} GROUP BY p.id")
    for text in (
        f"SELECT p.id, sum(amount) AS s FROM {source.format('')} GROUP BY p.id, {call}",
        f"SELECT {call}, p.id, sum(amount) AS s FROM {source.format('')} GROUP BY window, p.id",
        f"SELECT {call} AS window, p.id, sum(amount) AS s FROM {source.format('')} GROUP BY 1, 2",
    ):
        assert replace(read(text), text=bracket.text, presentation=bracket.presentation) == bracket


def test_of_several_streams_each_needs_a_window_of_its_own() -> None:
    for source in ("orders o JOIN clicks c", f"orders {W} o JOIN clicks {W} c"):
        with pytest.raises(QueryError, match="the windows of a join stand in brackets after its streams"):
            read(f"SELECT count(*) AS n FROM {source} ON o.user = c.user GROUP BY window(o.ts, '1 hour')")
    text = "SELECT count(*) AS n FROM orders o JOIN person p ON o.user = p.id GROUP BY window(p.age, '1 hour')"
    with pytest.raises(QueryError, match="must be over the time column of stream 'orders'") as refused:
        read(text)
    assert refused.value.hint == "write window(o.ts, …)"
    with pytest.raises(QueryError, match="a query has one window only"):
        read(text.replace("orders o", f"orders {W} o").replace("p.age", "o.ts"))
