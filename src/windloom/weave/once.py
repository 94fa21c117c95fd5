"""Properties that are made when first asked for, once per object, however many threads ask.

`functools.cached_property` either holds one lock for all objects of a class, so that columns wait for one another
(Python 3.11), or none at all, so that two threads make the same thing twice (later versions).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar

Made = TypeVar("Made")


class Shared(Protocol):
    """An object with such properties: it has its own lock, which one property may hold while it asks for another."""

    lock: RLock


class once(Generic[Made]):  # noqa: N801 - a decorator
    """A property that is made under the lock of its object, and kept there."""

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    def __get__(self, shared: Shared, owner: type[Any] | None = None) -> Made:
        values = shared.__dict__
        if self._name not in values:
            with shared.lock:
                if self._name not in values:
                    values[self._name] = self._make(shared)
        value: Made = values[self._name]
        return value
