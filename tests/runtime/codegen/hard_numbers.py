"""Inputs on which two implementations of an operator are likely to differ, and what ONNX's reference makes of them."""

import numpy as np
from numpy.typing import NDArray
from onnx import parser
from onnx.reference import ReferenceEvaluator

from axonnx.runtime.format.opset import OPS, SpikeOp

COUNT = 120_000  # of each input
NEURONS = [op for op in OPS.values() if op.neurons]

# No part of the library knows this operator. 0.1 is no float32 number, and one input is not used.
INVENTED = SpikeOp(
    "Invented",
    "Neurons that nobody has published.",
    "h' = −|β h| · 0.1 + I;   o' = 1 where h' ≥ θ",
    ("current", "membrane", "spikes"),
    ("decay", "threshold"),
    ("next_membrane", "next_spikes"),
    """
    tenth = Constant <value_float = 0.1> ()
    decayed = Mul(decay, membrane)
    size = Abs(decayed)
    below = Neg(size)
    small = Mul(below, tenth)
    next_membrane = Add(small, current)
    fires = GreaterOrEqual(next_membrane, threshold)
    next_spikes = Cast <to = 1> (fires)""",
)

Floats = NDArray[np.float32]


def hard_numbers(op: SpikeOp, count: int = COUNT, seed: int = 0) -> dict[str, Floats]:
    """Values of each input: a third small multiples of ½, which tie often; a third any bits; the others as in networks.

    Among any bits are zeros of both signs, subnormal and huge numbers; infinity and NaN are not.
    """
    rng = np.random.default_rng([seed, len(op.inputs)])
    if op.integers:
        return whole_numbers(op, rng, count)
    return {name: rng.permuted(_values(rng, name, count), axis=1).reshape(-1) for name in op.inputs}


def whole_numbers(op: SpikeOp, rng: np.random.Generator, count: int) -> dict[str, Floats]:
    """Values of each input of integer neurons: half of them small, so that they tie often; half as wide as certified.

    The largest leak times a membrane is just below 2³¹.
    """
    small = rng.random(count) < 0.5
    scale = 2 ** rng.integers(0, 9, count)
    wide = 2**31 // (2 * scale) - 2**13
    wide = np.where(small, 6, np.minimum(wide, 2**22))
    drawn = {name: rng.integers(-wide, wide + 1) for name in ("current", "membrane", "synaptic", "total")}
    drawn["threshold"] = rng.integers(1, np.where(small, 4, 2**20))
    for name in ("taken", "late_taken"):
        drawn[name] = np.where(rng.random(count) < 0.5, drawn["threshold"], rng.integers(0, 2**10, count))
    drawn |= {name: rng.integers(0, 2, count) for name in ("spikes", "zeroed", "late_zeroed", "least")}
    drawn |= {name: rng.integers(0, 2, count) * (scale - 1) for name in ("round_above", "round_below")}
    drawn |= {"scale": scale, "lost": rng.integers(1, scale + 1), "most": rng.integers(1, 8, count)}
    drawn |= {"counts": rng.integers(0, 8, count), "unit": np.full(count, 2.0**-5)}
    if "counts" in op.inputs:
        drawn["taken"], drawn["late_taken"] = np.minimum(drawn["taken"], 99), np.minimum(drawn["late_taken"], 99)
    drawn |= {f"synaptic_{name}": drawn[name] for name in ("lost", "scale", "round_above", "round_below", "least")}
    return {name: drawn[name].astype(np.float32) for name in op.inputs}


def _values(rng: np.random.Generator, name: str, count: int) -> Floats:
    part = count // 3
    any_bits = rng.integers(0, 2**32, part, np.uint32).view(np.float32)
    any_bits[~np.isfinite(any_bits)] = np.float32(1e-45)
    any_bits[: part // 4] = rng.choice(
        np.array([0.0, -0.0, 1e-45, -1e-45, 1e-38, -3e38, 3e38, 1.0], np.float32), part // 4
    )
    usual = rng.integers(0, 2, part) if name == "spikes" else rng.normal(0, 1, part)
    return np.stack([rng.integers(-4, 5, part) / 2, any_bits, usual]).astype(np.float32)


def by_onnx(op: SpikeOp, feeds: dict[str, Floats]) -> list[Floats]:
    """The operator's outputs as the reference implementation of ONNX computes them from the body."""
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(parser.parse_function(op.text)).run(None, feeds, attributes={})


def assert_same_bits(found: list[Floats], expected: list[Floats]) -> None:
    """All bits but those of NaN, of which there are many kinds; they must stand in the same places."""
    assert len(found) == len(expected) > 0
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == theirs.dtype == np.float32
        nan = np.isnan(theirs)
        assert np.array_equal(np.isnan(mine), nan)
        assert np.array_equal(mine.view(np.uint32)[~nan], theirs.view(np.uint32)[~nan])
        assert (~nan).sum() > 0.8 * len(theirs)
