"""Columns of several tables in one: slots are named by type, so that the whole is only as wide as its widest part."""

from __future__ import annotations

import re
from collections.abc import Iterable


def slot_names(kinds: Iterable[str]) -> tuple[str, ...]:
    """A slot for each type name: the type and a running number among columns of that type.

    >>> slot_names(["bigint", "decimal(10,2)", "bigint", "array<int>"])
    ('bigint__0', 'decimal_10_2__0', 'bigint__1', 'array_int__0')
    """
    used: dict[str, int] = {}
    names = []
    for kind in kinds:
        number = used[kind] = used.get(kind, -1) + 1
        words = "_".join(re.findall(r"\w+", kind))
        names.append(f"{words}__{number}")
    return tuple(names)
