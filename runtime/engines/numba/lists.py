"""Integers inside compiled kernels: bits to lists, lists shifted, and arrays found by their address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.np.arrayobj import populate_array

from axonnx.runtime.engines.numba.jit import intrinsic
from axonnx.runtime.engines.numba.vectors import INT32, INT64, broadcast, pointer

HALF = 8  # lanes of one look-up when bits become a list
INDICES, MANY = ir.VectorType(INT32, HALF), ir.VectorType(INT32, 2 * HALF)


@intrinsic
def bits_set(typing: Any, mask: Any) -> Any:
    """How many bits are set."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.ctpop(given[0])

    return types.int64(types.int64), code


@intrinsic
def item(typing: Any, array: Any, index: Any) -> Any:
    """array[index] for an index that is not negative; numba's own looks for those at every access."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.load(
            builder.gep(context.make_array(signature.args[0])(context, builder, given[0]).data, [given[1]])
        )

    return array.dtype(array, types.int64), code


@intrinsic
def put(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """array[index] = value for integers of 32 bits and an index that is not negative."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, given[0]).data
        builder.store(builder.trunc(given[2], INT32), builder.gep(data, [given[1]]))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), code


@intrinsic
def list_bits(typing: Any, to: Any, at: Any, positions: Any, byte: Any, base: Any) -> Any:
    """Write base + position for each bit set in a byte to ``to[at:]``, by a look-up; eight numbers are written."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        to, at, positions, byte, base = given
        row = builder.mul(byte, ir.Constant(INT64, HALF))
        found = builder.load(pointer(context, builder, signature.args[2], positions, row, INDICES))
        found.align = 4
        listed = builder.add(found, broadcast(builder, builder.trunc(base, INT32), INDICES))
        stored = builder.store(listed, pointer(context, builder, signature.args[0], to, at, INDICES))
        stored.align = 4
        return context.get_dummy_value()

    return types.void(to, types.int64, positions, types.int64, types.int64), code


@intrinsic
def shift_list(typing: Any, events: Any, at: Any, source: Any, offset: Any) -> Any:
    """events[at : at + 16] = events[source : source + 16] + offset"""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = signature.args[0]
        found = builder.load(pointer(context, builder, kind, given[0], given[2], MANY))
        found.align = 4
        listed = builder.add(found, broadcast(builder, builder.trunc(given[3], INT32), MANY))
        stored = builder.store(listed, pointer(context, builder, kind, given[0], given[1], MANY))
        stored.align = 4
        return context.get_dummy_value()

    return types.void(events, types.int64, types.int64, types.int64), code


@intrinsic
def bit_length(typing: Any, word: Any) -> Any:
    """How many bits a word that is not zero needs."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        zeros = builder.ctlz(given[0], ir.Constant(ir.IntType(1), 1))
        return builder.sub(ir.Constant(INT64, 64), zeros)

    return types.int64(types.uint64), code


def _array_at(kind: Any) -> Any:
    @intrinsic
    def array(typing: Any, address: Any, size: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            made = context.make_array(signature.return_type)(context, builder)
            width = context.get_constant(types.intp, kind.bitwidth // 8)
            data = builder.inttoptr(given[0], made.data.type)
            populate_array(made, data=data, shape=[given[1]], strides=[width], itemsize=width, meminfo=None)
            return made._getvalue()

        return types.Array(kind, 1, "C")(types.int64, types.int64), code

    return array


floats_at: Callable[[int, int], Any] = _array_at(types.float32)
ints_at: Callable[[int, int], Any] = _array_at(types.int32)
longs_at: Callable[[int, int], Any] = _array_at(types.int64)
