from __future__ import annotations

from collections.abc import Callable

import pytest

from windloom.language.select import parse_query
from windloom.model import DataType, Query, Stream

COLUMNS = {
    "ts": "timestamp",
    "symbol": "string",
    "price": "double",
    "volume": "bigint",
    "venue": "string",
    "meta": "struct<code:int,name:string>",
    "sizes": "array<int>",
    "My Col": "int",
}


@pytest.fixture(scope="session")
def streams() -> dict[str, Stream]:
    columns = {name: DataType.parse(kind) for name, kind in COLUMNS.items()}
    quotes = {"at": DataType.parse("bigint"), "bid": DataType.parse("decimal(10,2)")}
    return {
        "trades": Stream("trades", columns, time="ts"),
        "quotes": Stream("quotes", quotes, time="at", time_unit="ms"),
    }


@pytest.fixture(scope="session")
def read(streams: dict[str, Stream]) -> Callable[[str], Query]:
    """Reads a query over the test streams; `…` stands for `FROM trades [RANGE 1 hour SLIDE 1 minute]`."""

    def read_text(text: str) -> Query:
        return parse_query("q", text.replace("…", "FROM trades [RANGE 1 hour SLIDE 1 minute]"), streams)

    return read_text
