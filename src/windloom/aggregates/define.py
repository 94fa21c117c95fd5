"""Defines an aggregate in Python: functions, types and claims become a checked `UserDefined`, or are refused."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types
from numba.core.errors import NumbaError

from windloom.aggregates.laws import check_laws
from windloom.errors import WindloomError, near_names
from windloom.kernels.user_families import compile_function, number_kind
from windloom.model.aggregate import Property, UserDefined
from windloom.model.types import BIGINT, DOUBLE, DataType, TypeKind

#: The properties that an aggregate may claim. Slices are combined in any order and grouping, so two are required.
PROPERTIES = {
    "associative": Property.ASSOCIATIVE,
    "commutative": Property.COMMUTATIVE,
    "invertible": Property.INVERTIBLE,
    "selective": Property.SELECTIVE,
}
REQUIRED = ("associative", "commutative")

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_BOOLEAN = DataType.parse("boolean")


def define_aggregate(
    name: str,
    *,
    lift: Callable[..., Any],
    combine: Callable[..., Any],
    lower: Callable[..., Any],
    neutral: Any,
    inverse: Callable[..., Any] | None = None,
    properties: Iterable[str] = REQUIRED,
    argument: str = "double",
) -> UserDefined:
    """Compile the functions, and checks on drawn values that the claims about them hold."""
    _check_name(name)
    functions = {"lift": lift, "combine": combine, "lower": lower}
    functions |= {} if inverse is None else {"inverse": inverse}
    for role, function in functions.items():
        if not isinstance(function, FunctionType):
            raise WindloomError(
                f"aggregate '{name}': '{role}' is not a Python function",
                f"it is {function!r}",
                f"write one, for example {role}=lambda x: x" if role in ("lift", "lower") else f"{role}=lambda a, b: …",
            )
    fields = _fields(name, neutral)
    has = _claims(name, properties, inverse, fields)
    argument_types = {"double": DOUBLE, "bigint": BIGINT}
    if argument not in argument_types:
        raise WindloomError(
            f"aggregate '{name}': its argument cannot be a {argument}",
            "functions take 64-bit floats or whole numbers",
            "argument='double' or argument='bigint'",
        )
    kind = argument_types[argument]
    result, digest = _compiled_result(name, kind, fields, neutral, functions), _digest([*functions.values()], neutral)
    value_class = type(neutral) if isinstance(neutral, tuple) else None
    own = UserDefined(name, kind, fields, result, has, digest, lift, combine, lower, neutral, inverse, value_class)
    check_laws(own)
    return own


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith("__"):
        raise WindloomError(
            f"{name!r} cannot be the name of an aggregate",
            "queries call it by its name",
            "use lower-case letters, digits and underscores, for example geo_mean",
        )


def _fields(name: str, neutral: Any) -> tuple[tuple[str, DataType], ...]:
    """Return the names and types of the fields of a value, from the neutral one."""
    is_tuple = isinstance(neutral, tuple) and hasattr(neutral, "_fields")
    named = zip(neutral._fields, neutral, strict=True) if is_tuple else [("value", neutral)]
    typed: list[tuple[str, DataType]] = []
    for field, value in named:
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            typed.append((field, BIGINT))
        elif isinstance(value, float | np.floating):
            typed.append((field, DOUBLE))
        else:
            typed.clear()
            break
    if not typed:
        raise WindloomError(
            f"aggregate '{name}': its neutral value cannot be kept",
            f"it is {neutral!r}",
            "a value is a whole number, a float, or a NamedTuple of these, for example neutral=0.0",
        )
    return tuple(typed)


def _claims(
    name: str, properties: Iterable[str], inverse: object | None, fields: tuple[tuple[str, DataType], ...]
) -> Property:
    claimed = [properties] if isinstance(properties, str) else list(properties)
    for property_ in claimed:
        if property_ not in PROPERTIES:
            raise WindloomError(
                f"aggregate '{name}': unknown property '{property_}'",
                "a property says how values may be combined",
                near_names(property_, list(PROPERTIES)),
            )
    missing = [required for required in REQUIRED if required not in claimed]
    if missing:
        raise WindloomError(
            f"aggregate '{name}' must be {' and '.join(REQUIRED)}",
            f"slices are combined in any order and grouping, and {' and '.join(missing)} is not claimed",
            f"properties=({', '.join(map(repr, REQUIRED))})",
        )
    if "invertible" in claimed and inverse is None:
        raise WindloomError(
            f"aggregate '{name}' is claimed to be invertible", "it has no inverse", "inverse=lambda whole, part: …"
        )
    if inverse is not None and any(kind.kind is not TypeKind.INTEGER for _, kind in fields):
        raise WindloomError(
            f"aggregate '{name}' cannot have an inverse",
            "its values hold floats, and what a large float has absorbed is not restored when it is removed",
            "leave the inverse out; only whole numbers can be removed exactly",
        )
    has = PROPERTIES["invertible"] if inverse is not None else Property.NONE
    for property_ in claimed:
        has |= PROPERTIES[property_]
    return has


def _compiled_result(
    name: str,
    argument: DataType,
    fields: tuple[tuple[str, DataType], ...],
    neutral: Any,
    functions: dict[str, Callable[..., Any]],
) -> DataType:
    """Compile every function for its types; return the type of the result of `lower`."""
    value: Any = _machine_type(fields[0][1])
    if isinstance(neutral, tuple):
        value = types.BaseTuple.from_types([_machine_type(kind) for _, kind in fields], type(neutral))  # type: ignore[no-untyped-call]
    results = {}
    for role, function in functions.items():
        takes = {"lift": (_machine_type(argument),), "lower": (value,)}.get(role, (value, value))
        results[role] = _compile(name, role, function, takes)
    for role in results.keys() - {"lower"}:
        _check_value(name, role, results[role], value, fields)
    lowered = results["lower"]
    if isinstance(lowered, types.Boolean):
        return _BOOLEAN
    if not isinstance(lowered, types.Integer | types.Float):
        raise WindloomError(
            f"aggregate '{name}': 'lower' does not give a number",
            f"it gives a {lowered}",
            "an answer is one number or condition; define another aggregate for each further one",
        )
    return BIGINT if isinstance(lowered, types.Integer) else DOUBLE


def _machine_type(kind: DataType) -> Any:
    return types.int64 if number_kind(kind) is np.int64 else types.float64


def _compile(name: str, role: str, function: Callable[..., Any], takes: tuple[Any, ...]) -> Any:
    compiled: Any = compile_function(function)
    try:
        compiled.compile(takes)
    except (NumbaError, TypeError, NotImplementedError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # The first line names the compiler's pass; the next one describes the error.
        reason = next((line for line in lines[1:] if not line.startswith(("-", "There are", "During"))), lines[0])
        shown = ", ".join(map(str, takes))
        raise WindloomError(
            f"aggregate '{name}': '{role}' does not compile",
            f"for ({shown}): {reason}",
            "use numbers, named tuples of numbers, `math` and NumPy's functions of numbers, and nothing that changes",
        ) from None
    return compiled.overloads[takes].signature.return_type


def _check_value(name: str, role: str, result: Any, value: Any, fields: tuple[tuple[str, DataType], ...]) -> None:
    """Refuse a result that does not have the same fields, or has a float where whole numbers are kept."""
    same_class = getattr(result, "instance_class", None) is getattr(value, "instance_class", None)
    parts: Any = result if isinstance(result, types.BaseTuple) else (result,)
    if same_class and len(parts) == len(fields):
        numbers = all(isinstance(piece, types.Integer | types.Float | types.Boolean) for piece in parts)
        pairs = zip(parts, fields, strict=True)
        if numbers and all(kind == DOUBLE or not isinstance(piece, types.Float) for piece, (_, kind) in pairs):
            return
    raise WindloomError(
        f"aggregate '{name}': '{role}' does not give a value like the neutral one",
        f"it gives {result}, and the neutral value is {value}",
        "give the same fields, and use floats in the neutral value where values have floats: 0.0, not 0",
    )


def _digest(functions: list[Callable[..., Any]], neutral: Any) -> str:
    """Distinguish definitions by their code and by the constants that it reads."""
    digest = hashlib.sha256(repr((type(neutral).__name__, neutral)).encode())
    for function in functions:
        digest.update(_described(function, set()).encode())
    return digest.hexdigest()[:16]


def _described(value: Any, seen: set[int]) -> str:
    function = getattr(value, "py_func", value)  # the Python function of one that Numba has compiled
    if not isinstance(function, FunctionType):
        return f"{type(value).__name__} {getattr(value, '__qualname__', None) or _constant(value)}"
    if id(function) in seen:
        return function.__qualname__
    seen.add(id(function))
    read = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    cells = [_content(cell) for cell in function.__closure__ or ()]
    used = [(name, _described(read_value, seen)) for name, read_value in read.items() if read_value is not None]
    return repr((_code(function.__code__), used, [_described(cell, seen) for cell in cells], function.__defaults__))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # not filled yet


def _constant(value: Any) -> str:
    if isinstance(value, np.ndarray):  # the text of a long one leaves most of it out
        return f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    return value.__name__ if isinstance(value, ModuleType) else repr(value)


def _code(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts)
    return code.co_code.hex(), constants, code.co_names, code.co_varnames
