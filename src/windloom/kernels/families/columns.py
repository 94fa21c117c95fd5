"""Instructions that read and write one value of any family."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.cgutils import get_item_pointer
from numba.core.types import BaseTuple
from numba.np.arrayobj import load_item, store_item

from windloom.kernels.compiling.operations import compiled_in


def _pointer(context: Any, builder: Any, kind: Any, columns: Any, place: int, index: Any) -> Any:
    """The address of a value. Indices are never negative, so no access checks for an index from the end."""
    array = context.make_array(kind)(context, builder, builder.extract_value(columns, place))
    return get_item_pointer(context, builder, kind, array, [index], wraparound=False)  # type: ignore[no-untyped-call]


@compiled_in
def values_at(typing_context: Any, columns: Any, index: Any) -> Any:
    """The value at an index, as the same named tuple of scalars."""
    value = BaseTuple.from_types([column.dtype for column in columns], columns.instance_class)  # type: ignore[no-untyped-call]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = [
            load_item(context, builder, kind, _pointer(context, builder, kind, arguments[0], place, arguments[1]))  # type: ignore[no-untyped-call]
            for place, kind in enumerate(columns)
        ]
        return context.make_tuple(builder, value, values)

    return value(columns, types.int64), generate


@compiled_in
def put_at(typing_context: Any, columns: Any, index: Any, item: Any) -> Any:
    """Stores `item` at an index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for place, kind in enumerate(columns):
            value = context.cast(builder, builder.extract_value(arguments[2], place), item[place], kind.dtype)
            pointer = _pointer(context, builder, kind, arguments[0], place, arguments[1])
            store_item(context, builder, kind, value, pointer)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(columns, types.int64, item), generate
