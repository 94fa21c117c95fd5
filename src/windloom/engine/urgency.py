"""A query's text with the urgency that was given beside it."""

from __future__ import annotations

import re
from datetime import timedelta

from windloom.errors import WindloomError
from windloom.model.time import parse_duration
from windloom.model.urgency import USUAL_PRIORITY, Urgency

_OPTIONS = re.compile(r"\s*(WITHIN|PRIORITY)\b", re.IGNORECASE)


def with_urgency(name: str, text: str, within: str | timedelta | None, priority: int | None) -> str:
    """Return the text as it is registered: urgency is part of it, so that it is kept wherever the text is kept.

    >>> with_urgency("q", "SELECT …", "30 seconds", 2)
    'WITHIN 30 seconds PRIORITY 2 AS SELECT …'
    """
    if within is None and priority is None:
        return text
    if _OPTIONS.match(text):
        raise WindloomError(
            f"query '{name}' says twice how urgent it is",
            "its text begins with WITHIN or PRIORITY",
            "leave within and priority out, or take them out of the text",
        )
    if priority is not None and (isinstance(priority, bool) or not isinstance(priority, int)):
        raise WindloomError(
            f"query '{name}': a priority is a whole number", f"it is {priority!r}", "1 is answered first, 9 last"
        )
    try:
        ticks = None if within is None else parse_duration(within)
        urgency = Urgency(ticks, USUAL_PRIORITY if priority is None else priority)
    except WindloomError as error:
        raise WindloomError(f"query '{name}': {error.message}", error.detail, error.hint) from None
    return f"{urgency} AS {text}" if str(urgency) else text
