"""Many floats at a time inside compiled kernels: loads, arithmetic, comparisons to bit masks, lists of set bits.

A ``Lanes`` value stays in registers, whatever the width of the machine's own; LLVM splits or joins it. Every operation
is the plain IEEE one, lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import populate_array

LANES = 16
HALF = 8  # lanes of one look-up when bits become a list
INT32 = ir.IntType(32)
INT64 = ir.IntType(64)
INDICES = ir.VectorType(INT32, HALF)


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


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any, vector: Any) -> Any:
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
        value = builder.load(_pointer(context, builder, signature.args[1], given[1], given[2], vector))
        value.align = 4
        return value

    return like(like, array, types.int64), code


@intrinsic
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Put all lanes into ``array`` from ``index`` on."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        vector = _vector(signature.args[2])
        stored = builder.store(given[2], _pointer(context, builder, signature.args[0], given[0], given[1], vector))
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


def _splat(builder: Any, value: Any, vector: Any) -> Any:
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(INT32, 0))
    order = ir.Constant(ir.VectorType(INT32, vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), order)


@intrinsic
def splat(typing: Any, like: Any, value: Any) -> Any:
    """One float32 in all lanes that ``like`` has."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _splat(builder, given[1], _vector(signature.return_type))

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


def _mask(builder: Any, comparison: Any) -> Any:
    return builder.zext(builder.bitcast(comparison, ir.IntType(LANES)), INT64)


@intrinsic
def at_least(typing: Any, a: Any, b: Any) -> Any:
    """A bit for each lane where a ≥ b."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _mask(builder, builder.fcmp_ordered(">=", given[0], given[1]))

    return types.int64(a, a), code


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
        return _mask(builder, builder.fcmp_unordered("!=", given[0], ir.Constant(given[0].type, [0.0] * LANES)))

    return types.int64(a), code


@intrinsic
def bits_set(typing: Any, mask: Any) -> Any:
    """How many bits are set."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.ctpop(given[0])

    return types.int64(types.int64), code


@intrinsic
def list_bits(typing: Any, to: Any, at: Any, positions: Any, byte: Any, base: Any) -> Any:
    """Write base + position for each bit set in a byte to ``to[at:]``, by a look-up; eight numbers are written."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        to, at, positions, byte, base = given
        row = builder.mul(byte, ir.Constant(INT64, HALF))
        found = builder.load(_pointer(context, builder, signature.args[2], positions, row, INDICES))
        found.align = 4
        listed = builder.add(found, _splat(builder, builder.trunc(base, INT32), INDICES))
        stored = builder.store(listed, _pointer(context, builder, signature.args[0], to, at, INDICES))
        stored.align = 4
        return context.get_dummy_value()

    return types.void(to, types.int64, positions, types.int64, types.int64), code


@intrinsic
def shift_list(typing: Any, events: Any, at: Any, source: Any, offset: Any) -> Any:
    """events[at : at + 8] = events[source : source + 8] + offset"""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = signature.args[0]
        found = builder.load(_pointer(context, builder, kind, given[0], given[2], INDICES))
        found.align = 4
        listed = builder.add(found, _splat(builder, builder.trunc(given[3], INT32), INDICES))
        stored = builder.store(listed, _pointer(context, builder, kind, given[0], given[1], INDICES))
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
