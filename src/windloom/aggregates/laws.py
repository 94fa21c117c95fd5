"""Checks the laws of a user's aggregate, which plans rely on, on drawn values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from windloom.errors import WindloomError
from windloom.kernels.user_families import compile_function, number_kind
from windloom.model.aggregate import Property, UserDefined
from windloom.model.types import TypeKind

#: Floats may differ by this, relative to the largest value of a field involved.
TOLERANCE = 1e-9

_CORNERS = (0, 1, -1, 2, 3, -7, 10, 1000, -100_000)
_FRACTIONS = (0.5, -0.25, 1e-3, 1e6, 12345.678, -9.75)
_DRAWN, _TRIPLES = 24, 400


def check_laws(own: UserDefined) -> None:
    """Refuse an aggregate that breaks a law, with the values that show it."""
    try:
        laws = _Laws(own)
        for argument in laws.arguments:
            laws.compiled_as_written("lift", own.lift, laws.lift, argument)
        for pair in pairwise(laws.values):
            laws.compiled_as_written("combine", own.combine, laws.combine, *pair)
        for a, b, c in laws.triples():
            laws.neutral(a)
            laws.commutative(a, b)
            laws.associative(a, b, c)
            if own.inverse is not None:
                laws.invertible(a, b)
            if Property.SELECTIVE in own.has:
                laws.selective(a, b)
    except WindloomError:
        raise
    except Exception as error:  # a user's function may raise anything
        raise WindloomError(
            f"aggregate '{own.name}': its functions raise",
            f"{type(error).__name__}: {error}",
            "compiled functions must give a value for every argument, for example NaN",
        ) from None


class _Laws:
    """Values and the compiled functions on them. Cases with a value that is not finite are ignored."""

    def __init__(self, own: UserDefined) -> None:
        self.own = own
        self.kinds = [number_kind(kind) for _, kind in own.fields]
        self.lift, self.combine = compile_function(own.lift), compile_function(own.combine)
        self.inverse = None if own.inverse is None else compile_function(own.inverse)
        self.zero = self._value(own.neutral)
        rng = np.random.default_rng(13)  # ordinary numbers and corner cases, the same ones each time
        if own.argument.kind is TypeKind.INTEGER:
            self.arguments: list[Any] = list(map(np.int64, (*_CORNERS, *rng.integers(-1000, 1000, _DRAWN))))
        else:
            drawn = (*rng.normal(0, 10, _DRAWN), *rng.lognormal(0, 3, _DRAWN))
            self.arguments = list(map(np.float64, (*_CORNERS, *_FRACTIONS, *drawn)))
        self.values = [
            value for argument in self.arguments if self.is_finite(value := self._value(self.lift(argument)))
        ]
        if len(self.values) < 3:
            raise WindloomError(
                f"aggregate '{own.name}': 'lift' gives no finite values",
                f"of {len(self.arguments)} drawn arguments, {len(self.values)} have one",
                "lift must be defined for ordinary numbers",
            )

    def _value(self, value: Any) -> Any:
        """Return the value with every field in its type."""
        if self.own.value_class is None:
            return self.kinds[0](value)
        return self.own.value_class(*(kind(field) for kind, field in zip(self.kinds, value, strict=True)))

    def _parts(self, value: Any) -> tuple[Any, ...]:
        return (value,) if self.own.value_class is None else tuple(value)

    def is_finite(self, *values: Any) -> bool:
        return all(math.isfinite(field) for value in values for field in self._parts(value))

    def both(self, a: Any, b: Any) -> Any:
        return self._value(self.combine(a, b))

    def triples(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield triples of lifted values, and of values that were combined before."""
        rng = np.random.default_rng(17)
        pool = list(self.values)
        for _ in range(len(pool)):
            a, b = (pool[i] for i in rng.integers(0, len(pool), 2))
            if self.is_finite(combined := self.both(a, b)):
                pool.append(combined)
        for _ in range(_TRIPLES):
            a, b, c = (pool[i] for i in rng.integers(0, len(pool), 3))
            yield a, b, c

    def compiled_as_written(
        self, role: str, written: Callable[..., Any], compiled: Callable[..., Any], *arguments: Any
    ) -> None:
        """Refuse a function that computes something else when compiled than in Python."""
        result = self._value(compiled(*arguments))
        try:
            expected = self._value(written(*arguments))
        except (ArithmeticError, ValueError):
            return  # outside of the function's domain; compiled code gives NaN or infinity there
        if self.is_finite(result, expected) and not self.are_near(result, expected, result, expected):
            shown = ", ".join(map(str, arguments))
            self._refuse(
                f"'{role}' does not compute the same when it is compiled",
                f"{role}({shown}) is {_shown(expected)} in Python and {_shown(result)} compiled",
                "whole numbers have 64 bits, and divisions never raise",
            )

    def are_near(self, left: Any, right: Any, *others: Any) -> bool:
        """Return whether whole numbers are equal, and floats up to rounding, also of the largest of `others`."""
        columns = zip(*(self._parts(value) for value in (left, right, *others)), strict=True)
        for kind, (first, second, *rest) in zip(self.kinds, columns, strict=True):
            size = max(abs(each) for each in (first, second, *rest))
            if abs(first - second) > (0 if kind is np.int64 else TOLERANCE * size):
                return False
        return True

    def neutral(self, a: Any) -> None:
        for changed, text in (
            (self.both(self.zero, a), "combine(neutral, a)"),
            (self.both(a, self.zero), "combine(a, neutral)"),
        ):
            if not self.are_near(changed, a, a):
                self._refuse(
                    "its neutral value changes other values",
                    f"{text} is {_shown(changed)}, where a = {_shown(a)} and neutral = {_shown(self.zero)}",
                    "combining a value with the neutral value must not change it",
                )

    def commutative(self, a: Any, b: Any) -> None:
        left, right = self.both(a, b), self.both(b, a)
        if self.is_finite(left, right) and not self.are_near(left, right, a, b):
            self._refuse(
                "it is not commutative",
                f"combine(a, b) is {_shown(left)} and combine(b, a) is {_shown(right)},"
                f" where a = {_shown(a)} and b = {_shown(b)}",
                "tuples of a slice come in any order, so the result must not depend on it",
            )

    def associative(self, a: Any, b: Any, c: Any) -> None:
        ab, bc = self.both(a, b), self.both(b, c)
        left, right = self.both(ab, c), self.both(a, bc)
        if self.is_finite(ab, bc, left, right) and not self.are_near(left, right, a, b, c, ab, bc):
            self._refuse(
                "it is not associative",
                f"combine(combine(a, b), c) is {_shown(left)} and combine(a, combine(b, c)) is {_shown(right)},"
                f" where a = {_shown(a)}, b = {_shown(b)} and c = {_shown(c)}",
                "keep in the value what makes it associative, for example sum and count instead of a mean",
            )

    def invertible(self, a: Any, b: Any) -> None:
        assert self.inverse is not None
        restored = self._value(self.inverse(self.both(a, b), b))
        if not self.are_near(restored, a):
            self._refuse(
                "its inverse does not remove what was combined",
                f"inverse(combine(a, b), b) is {_shown(restored)}, where a = {_shown(a)} and b = {_shown(b)}",
                "leave the inverse out, or make it exact",
            )

    def selective(self, a: Any, b: Any) -> None:
        combined = self.both(a, b)
        if combined not in (a, b):
            self._refuse(
                "it is not selective",
                f"combine(a, b) is {_shown(combined)}, where a = {_shown(a)} and b = {_shown(b)}",
                "leave 'selective' out of its properties: it says that the result is one of the two",
            )

    def _refuse(self, fact: str, detail: str, hint: str) -> None:
        raise WindloomError(f"aggregate '{self.own.name}': {fact}", detail, hint)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", ())
        shown = ", ".join(f"{name}={field}" for name, field in zip(fields, value, strict=True))
        return f"{type(value).__name__}({shown})"
    return str(value)
