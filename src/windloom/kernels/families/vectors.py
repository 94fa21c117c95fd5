"""Instructions over sixteen neighbours of a contiguous column, which Numba's compiler does not find by itself.

They are LLVM's own vectors, wider than any register, so that every processor gets the instructions it has.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from windloom.kernels.compiling.operations import compiled_in

WIDTH = 16

#: Bytes of a cache line.
LINE = 64


def _pointer(context: Any, builder: Any, kind: Any, column: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, column).data
    return builder.bitcast(builder.gep(data, [index]), ir.VectorType(ir.IntType(64), WIDTH).as_pointer())


@compiled_in
def any_above(typing_context: Any, column: Any, first: Any, limit: Any) -> Any:
    """Whether one of the 64-bit integers `column[first : first + WIDTH]` is above `limit`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = builder.load(_pointer(context, builder, signature.args[0], *arguments[:2]), align=8)
        vector = values.type
        limits = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[2], ir.Constant(ir.IntType(32), 0))
        every = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        limits = builder.shuffle_vector(limits, ir.Constant(vector, ir.Undefined), every)
        above = builder.bitcast(builder.icmp_signed(">", values, limits), ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", above, ir.Constant(above.type, 0))

    return None if column.layout != "C" else (types.boolean(column, types.int64, types.int64), generate)


@compiled_in
def stream_sixteen(typing_context: Any, source: Any, first: Any, target: Any, place: Any) -> Any:
    """`target[place : place + WIDTH]` = `source[first : first + WIDTH]`, past the caches.

    The target begins at a cache line. An ordinary store first reads the line that it is about to fill;
    for results larger than the caches, that is half of all traffic.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = builder.load(_pointer(context, builder, signature.args[0], *arguments[:2]), align=8)
        stored = builder.store(values, _pointer(context, builder, signature.args[2], *arguments[2:]), align=LINE)
        stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    if source.layout != "C" or target.layout != "C":
        return None
    return types.void(source, types.int64, target, types.int64), generate


@compiled_in
def end_streams(typing_context: Any) -> Any:
    """Makes streamed values visible to other threads."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate
