"""What the registry knows of joins: the types of their expressions without Spark, and what types do not allow."""

from __future__ import annotations

from typing import NoReturn

import pytest

from windloom.engine.registry import Registry
from windloom.errors import WindloomError
from windloom.model import DataType, ExpressionKey, Stream

COLUMNS = {
    "orders": {"ts": "timestamp", "user": "string", "price": "double", "qty": "int", "fee": "decimal(10,2)"},
    "clicks": {"ts": "timestamp", "user": "string", "cost": "double", "seen": "int", "tags": "array<string>"},
}
FROM = "FROM orders [RANGE 1 hour SLIDE 5 minutes] o JOIN clicks [RANGE 30 minutes] c ON o.user = c.user"


def no_session() -> NoReturn:
    raise AssertionError("Spark is not needed for this")


@pytest.fixture
def registry() -> Registry:
    found = Registry(no_session)
    for name, columns in COLUMNS.items():
        kinds = {column: DataType.parse(kind) for column, kind in columns.items()}
        found.streams[name] = Stream(name, kinds, time="ts")
    return found


@pytest.mark.parametrize(
    ("left", "right", "hint"),
    [
        ("qty", "cast(seen AS bigint) AS seen", "cast one of them: CAST(qty AS BIGINT)"),
        ("cast(qty AS bigint) AS qty", "seen", "cast one of them: CAST(seen AS BIGINT)"),
        ("user", "seen", "cast one of them: CAST(seen AS STRING)"),
        ("fee", "seen", "cast both: CAST(fee AS DECIMAL(12,2)) and CAST(seen AS DECIMAL(12,2))"),
    ],
)
def test_types_that_differ_are_cast_to_the_wider_one(registry: Registry, left: str, right: str, hint: str) -> None:
    window = "[TUMBLE 1 hour]"
    registry.add_query("q", f"SELECT {left} FROM orders {window} INTERSECT SELECT {right} FROM clicks {window}")
    with pytest.raises(WindloomError, match="has different types on both sides of INTERSECT") as caught:
        registry.types()
    assert caught.value.hint == hint


def test_types_of_a_join_and_of_its_sides_are_known_without_a_session(registry: Registry) -> None:
    query = registry.add_query(
        "q",
        f"SELECT upper(o.user) AS u, sum(o.fee * c.seen) AS s, max(o.price + c.cost) AS m {FROM} AND o.qty < c.seen"
        " WHERE c.cost > 1 GROUP BY upper(o.user)",
    )
    types = {(key.relation, key.sql): str(kind) for key, kind in registry.types().items()}
    relation = "orders AS o, clicks AS c"
    assert query.source.relation == relation
    assert types[relation, "upper(o.user)"] == "string"
    assert types[relation, "o.fee * c.seen"] == "decimal(21,2)"
    assert types[relation, "o.price + c.cost"] == "double"
    assert types["orders", "upper(user)"] == "string"
    assert types["clicks", "CAST(seen AS DECIMAL(10, 0))"] == "decimal(10,0)"
    assert types["clicks", "cost > 1"] == "boolean"
    assert all(ExpressionKey(name, expression.sql) in registry.types() for name, expression in query.evaluated)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"SELECT sum(upper(o.user)) {FROM}", "query 'q': cannot take 'sum(upper(o.user))'"),
        (f"SELECT count(*) {FROM} WHERE o.qty + 1", "query 'q': the condition 'qty + 1' on 'o' is not a condition"),
        (f"SELECT count(*) FILTER (WHERE o.qty + 1) {FROM}", "is not a condition"),
        (f"SELECT count(*) {FROM} WHERE o.qty + c.seen", "cannot be evaluated on pairs"),
    ],
)
def test_what_types_do_not_allow_is_refused_by_name(registry: Registry, text: str, message: str) -> None:
    registry.add_query("q", text)
    with pytest.raises(WindloomError) as caught:
        registry.types()
    assert message in caught.value.message
    assert caught.value.hint
