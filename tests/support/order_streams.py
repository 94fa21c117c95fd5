"""Streams of orders and clicks for tests of the language, and a join of them."""

from __future__ import annotations

from windloom.model import DataType, Stream

ORDERS = {
    "ts": "timestamp",
    "user": "string",
    "region": "string",
    "price": "double",
    "qty": "int",
    "shop": "bigint",
    "fee": "decimal(10,2)",
    "kind": "string",
}
CLICKS = {
    "ts": "timestamp",
    "user": "string",
    "url": "string",
    "cost": "double",
    "seen": "int",
    "page": "int",
    "tax": "decimal(12,4)",
    "kind": "string",
}
STREAMS = {
    name: Stream(name, {column: DataType.parse(kind) for column, kind in columns.items()}, time="ts")
    for name, columns in {"orders": ORDERS, "clicks": CLICKS, "visits": CLICKS}.items()
}
FROM = "FROM orders [RANGE 1 hour SLIDE 5 minutes] o JOIN clicks [RANGE 30 minutes] c ON o.user = c.user"
