"""Four integers at a time: what the compiler does not make of loops over so few on its own."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

#: Integers that are worked on together.
LANES = 4


def _add_products(typing_context: Any, out: Any, at: Any, left: Any, right: Any, place: Any) -> Any:
    """`out[at : at + LANES]` += left[:LANES] · right[place : place + LANES], in 64 bits.

    All are arrays of one dimension, those of factors with 32 or 64 bits; nothing checks bounds.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        long = ir.VectorType(ir.IntType(64), LANES)

        def loaded(number: int, index: Any = None) -> tuple[Any, Any]:
            kind = signature.args[number]
            element = context.get_data_type(kind.dtype)
            pointer = context.make_array(kind)(context, builder, arguments[number]).data
            if index is not None:
                pointer = builder.gep(pointer, [index])
            pointer = builder.bitcast(pointer, ir.VectorType(element, LANES).as_pointer())
            values = builder.load(pointer)
            values.align = kind.dtype.bitwidth // 8  # that of one element
            return (builder.sext(values, long) if kind.dtype.bitwidth < 64 else values), pointer

        product = builder.mul(loaded(2)[0], loaded(3, arguments[4])[0])
        total, place_of_total = loaded(0, arguments[1])
        builder.store(builder.add(total, product), place_of_total).align = 8
        return context.get_dummy_value()

    return types.void(out, at, left, right, place), generate


add_products: Any = intrinsic(_add_products)
