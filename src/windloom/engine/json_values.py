"""Values of answers as JSON can hold them: in the service, in PostgreSQL's JSON columns, in letters to a webhook."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it.

    >>> plain(Decimal("1.50")), plain(float("nan")), plain(datetime(2026, 1, 5, tzinfo=UTC)), plain([b"a"])
    ('1.50', 'NaN', '2026-01-05T00:00:00Z', ['61'])
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) < 2**53 else str(value)
        case float():
            return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' * (value < 0)}Infinity"
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if value.tzinfo else value.isoformat()
        case date() | time():
            return value.isoformat()
        case Decimal() | timedelta():
            return str(value)
        case bytes():
            return value.hex()
        case dict():
            return {str(key): plain(item_value) for key, item_value in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return str(value)
