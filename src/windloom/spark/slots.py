"""Columns of several tables in one: slots named by type, so that the whole is as wide as its widest part."""

from __future__ import annotations

from collections.abc import Iterable


def slot_names(kinds: Iterable[str]) -> tuple[str, ...]:
    """A slot for each type name: the type and a running number among columns of that type.

    >>> slot_names(["bigint", "decimal(10,2)", "bigint"])
    ('bigint__0', 'decimal_10_2__0', 'bigint__1')
    """
    used: dict[str, int] = {}
    names = []
    for kind in kinds:
        number = used[kind] = used.get(kind, -1) + 1
        names.append(f"{kind.replace('(', '_').replace(',', '_').replace(')', '')}__{number}")
    return tuple(names)
