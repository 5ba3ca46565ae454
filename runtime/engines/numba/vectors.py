"""Many floats at a time inside compiled kernels: loads, stores, arithmetic, comparisons to bit masks.

A ``Lanes`` value stays in registers, whatever the width of the machine's own; LLVM splits or joins it. Every operation
is the plain IEEE one, lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from axonnx.runtime.engines.numba.jit import intrinsic

LANES = 16
INT32 = ir.IntType(32)
INT64 = ir.IntType(64)


class Lanes(types.Type):
    """So many float32 in registers."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"axonnx.lanes{width}")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, _vector(kind))


def _vector(kind: Lanes) -> Any:
    return ir.VectorType(ir.FloatType(), kind.width)


def pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any, vector: Any) -> Any:
    """Where a vector's worth of ``array`` begins."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


def _zeros(width: int) -> Any:
    @intrinsic
    def zeros(typing: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return ir.Constant(_vector(signature.return_type), [0.0] * width)

        return Lanes(width)(), code

    return zeros


zeros16: Callable[[], Any] = _zeros(16)
zeros32: Callable[[], Any] = _zeros(32)
zeros64: Callable[[], Any] = _zeros(64)


@intrinsic
def load(typing: Any, like: Any, array: Any, index: Any) -> Any:
    """As many floats of ``array`` from ``index`` on as ``like`` has."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        vector = _vector(signature.return_type)
        value = builder.load(pointer(context, builder, signature.args[1], given[1], given[2], vector))
        value.align = 4
        return value

    return like(like, array, types.int64), code


@intrinsic
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Put all lanes into ``array`` from ``index`` on."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        vector = _vector(signature.args[2])
        stored = builder.store(given[2], pointer(context, builder, signature.args[0], given[0], given[1], vector))
        stored.align = 4
        return context.get_dummy_value()

    return types.void(array, types.int64, value), code


def _lane_by_lane(instruction: str) -> Any:
    @intrinsic
    def operation(typing: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return getattr(builder, instruction)(given[0], given[1])

        return a(a, a), code

    return operation


add: Callable[[Any, Any], Any] = _lane_by_lane("fadd")
sub: Callable[[Any, Any], Any] = _lane_by_lane("fsub")
mul: Callable[[Any, Any], Any] = _lane_by_lane("fmul")


@intrinsic
def add_product(typing: Any, total: Any, a: Any, b: Any) -> Any:
    """total + a · b, fused where the machine can: only for sums that are exact either way."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        vector = given[0].type
        name = f"llvm.fmuladd.v{vector.count}f32"
        kind = ir.FunctionType(vector, [vector, vector, vector])
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, [given[1], given[2], given[0]])

    return total(total, total, total), code


def broadcast(builder: Any, value: Any, vector: Any) -> Any:
    """One value in every lane of a vector."""
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(INT32, 0))
    order = ir.Constant(ir.VectorType(INT32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), order)


@intrinsic
def splat(typing: Any, like: Any, value: Any) -> Any:
    """One float32 in all lanes that ``like`` has."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return broadcast(builder, given[1], _vector(signature.return_type))

    return like(like, types.float32), code


@intrinsic
def absolute(typing: Any, a: Any) -> Any:
    """|a|"""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        bits = ir.VectorType(INT32, LANES)
        kept = builder.and_(builder.bitcast(given[0], bits), ir.Constant(bits, [0x7FFFFFFF] * LANES))
        return builder.bitcast(kept, given[0].type)

    return a(a), code


@intrinsic
def negative(typing: Any, a: Any) -> Any:
    """−a"""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        bits = ir.VectorType(INT32, LANES)
        flipped = builder.xor(builder.bitcast(given[0], bits), ir.Constant(bits, [-0x80000000] * LANES))
        return builder.bitcast(flipped, given[0].type)

    return a(a), code


def _mask(builder: Any, how: str, a: Any, b: Any, unordered: bool = False) -> Any:
    """A bit for each lane where a comparison holds, eight lanes at a time, as machines put them into a byte."""
    compare = builder.fcmp_unordered if unordered else builder.fcmp_ordered
    total = ir.Constant(INT64, 0)
    for start in range(0, a.type.count, 8):
        order = ir.Constant(ir.VectorType(INT32, 8), list(range(start, start + 8)))
        left, right = builder.shuffle_vector(a, a, order), builder.shuffle_vector(b, b, order)
        byte = builder.zext(builder.bitcast(compare(how, left, right), ir.IntType(8)), INT64)
        total = builder.or_(total, builder.shl(byte, ir.Constant(INT64, start)))
    return total


@intrinsic
def at_least(typing: Any, a: Any, b: Any) -> Any:
    """A bit for each lane where a ≥ b."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _mask(builder, ">=", given[0], given[1])

    return types.int64(a, a), code


@intrinsic
def equal(typing: Any, a: Any, b: Any) -> Any:
    """A bit for each lane where a = b."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _mask(builder, "==", given[0], given[1])

    return types.int64(a, a), code


@intrinsic
def nearest(typing: Any, a: Any) -> Any:
    """a rounded to integers, ties to even."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        vector = given[0].type
        kind = ir.FunctionType(vector, [vector])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.rint.v{vector.count}f32")
        return builder.call(function, [given[0]])

    return a(a), code


@intrinsic
def ones_at_least(typing: Any, a: Any, b: Any) -> Any:
    """1.0 in each lane where a ≥ b, 0.0 elsewhere."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.uitofp(builder.fcmp_ordered(">=", given[0], given[1]), given[0].type)

    return a(a, a), code


@intrinsic
def active(typing: Any, a: Any) -> Any:
    """A bit for each lane that is not zero; nan is not."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _mask(builder, "!=", given[0], ir.Constant(given[0].type, [0.0] * LANES), unordered=True)

    return types.int64(a), code
