"""Instructions on four integers at a time, which the compiler does not generate from such short loops by itself."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from windloom.kernels.compiling import compiled_in

#: Integers that are worked on together.
LANES = 4


@compiled_in
def add_products(typing_context: Any, out: Any, at: Any, left: Any, right: Any, place: Any) -> Any:
    """`out[at : at + LANES]` += left[:LANES] · right[place : place + LANES], in 64 bits.

    All are arrays of one dimension; factors have 32 or 64 bits. Nothing checks bounds.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        long, factors = ir.VectorType(ir.IntType(64), LANES), []
        for number, index in ((2, ir.Constant(ir.IntType(64), 0)), (3, arguments[4])):
            kind = signature.args[number]
            values, _ = _lanes_at(context, builder, kind, arguments[number], index)
            factors.append(builder.sext(values, long) if kind.dtype.bitwidth < 64 else values)
        total, place_of_total = _lanes_at(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(builder.add(total, builder.mul(*factors)), place_of_total).align = 8
        return context.get_dummy_value()

    return types.void(out, at, left, right, place), generate


def _side_by_side(builder: Any, values: Any, bits: int) -> Any:
    """Return numbers in registers as one vector; written to memory singly, they are slow to be read at once."""
    vector = ir.Constant(ir.VectorType(ir.IntType(bits), LANES), ir.Undefined)
    for lane, value in enumerate(values):
        vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
    return vector


def _lanes_at(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> tuple[Any, Any]:
    """Return the lanes of an array from an index on, and their address."""
    pointer = builder.gep(context.make_array(kind)(context, builder, array).data, [index])
    pointer = builder.bitcast(pointer, ir.VectorType(context.get_data_type(kind.dtype), LANES).as_pointer())
    values = builder.load(pointer)
    values.align = kind.dtype.bitwidth // 8  # the alignment of one element
    return values, pointer


@compiled_in
def add_lanes(typing_context: Any, out: Any, at: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
    """`out[at : at + LANES]` += the four numbers, in the bits that `out` has; nothing checks bounds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        values, place = _lanes_at(context, builder, kind, arguments[0], arguments[1])
        added = _side_by_side(builder, arguments[2:], kind.dtype.bitwidth)
        builder.store(builder.add(values, added), place).align = kind.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(out, types.int64, *(out.dtype,) * LANES), generate


@compiled_in
def add_scaled(
    typing_context: Any, out: Any, at: Any, first: Any, second: Any, third: Any, fourth: Any, right: Any, place: Any
) -> Any:
    """`out[at : at + LANES]` += the four numbers · right[place : place + LANES], in 64 bits; nothing checks bounds."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        long, bits = ir.VectorType(ir.IntType(64), LANES), signature.args[6].dtype.bitwidth
        left = _side_by_side(builder, arguments[2:6], bits)
        factors, _ = _lanes_at(context, builder, signature.args[6], arguments[6], arguments[7])
        if bits < 64:
            left, factors = builder.sext(left, long), builder.sext(factors, long)
        total, place_of_total = _lanes_at(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(builder.add(total, builder.mul(left, factors)), place_of_total).align = 8
        return context.get_dummy_value()

    return types.void(out, types.int64, *(right.dtype,) * LANES, right, types.int64), generate


# Instructions over sixteen neighbours of a contiguous column, which Numba's compiler does not find by itself.
#
# They are LLVM's own vectors, wider than any register, so that every processor gets the instructions it has.

WIDTH = 16

#: Bytes of a cache line.
LINE = 64


def _pointer(context: Any, builder: Any, kind: Any, column: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, column).data
    return builder.bitcast(builder.gep(data, [index]), ir.VectorType(ir.IntType(64), WIDTH).as_pointer())


@compiled_in
def any_above(typing_context: Any, column: Any, first: Any, limit: Any) -> Any:
    """Return whether one of the 64-bit integers `column[first : first + WIDTH]` is above `limit`."""

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
    """Make streamed values visible to other threads."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate
