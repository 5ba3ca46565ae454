"""A body, read line by line, is what ONNX's parser reads; interpreted in numpy, it has the bits of ONNX's reference."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper, parser

from axonnx.runtime.codegen.expressions import assignments
from axonnx.runtime.engines.numpy_engine import neuron_kernel
from axonnx.runtime.format.opset import OPS, SpikeOp, function

from .hard_numbers import COUNT, INVENTED, NEURONS, assert_same_bits, by_onnx, hard_numbers


@pytest.mark.parametrize("op", [*NEURONS, INVENTED], ids=lambda op: op.name)
def test_assignments_are_the_nodes_that_onnx_reads(op):
    nodes = function(op.name).node if op.name in OPS else parser.parse_function(op.text).node
    steps = assignments(op)
    assert [(step.output, step.operation, step.inputs) for step in steps] == [
        (node.output[0], node.op_type, tuple(node.input)) for node in nodes
    ]
    attributes = [[helper.get_attribute_value(attribute) for attribute in node.attribute] for node in nodes]
    assert [[np.float32(step.value)] if step.value else [] for step in steps] == attributes
    assert len(steps) > 1


@pytest.mark.parametrize(
    "line",
    [
        "spikes = Exp(current)",
        "spikes = Add(current, current), more",
        "spikes = current",
        "spikes = Add(current, current) # why",
        "spikes = Mod(current, current)",
    ],
)
def test_a_line_that_cannot_be_lowered_is_named(line):
    with pytest.raises(AssertionError, match="Strange: 'spikes = "):
        assignments(SpikeOp("Strange", "", "", ("current",), (), ("spikes",), line))


@pytest.mark.parametrize("op", [*NEURONS, INVENTED], ids=lambda op: op.name)
def test_numpy_has_the_bits_of_onnx(op):
    feeds = hard_numbers(op)
    operands = [feeds[name] for name in op.inputs if name not in op.parameters]
    with np.errstate(all="ignore"):
        found = neuron_kernel(op)(*operands, {name: feeds[name] for name in op.parameters})
    assert_same_bits(list(found), by_onnx(op, feeds))


@pytest.mark.parametrize("op", [op for op in NEURONS if not op.integers], ids=lambda op: op.name)
def test_the_numbers_are_hard(op):
    """Every kind of number is met, and what is compared with a threshold is often equal to it."""
    feeds = hard_numbers(op)
    for values in feeds.values():
        assert len(values) == COUNT >= 100_000
        magnitudes = np.abs(values)
        assert ((magnitudes > 0) & (magnitudes < np.finfo(np.float32).tiny)).any()
        assert (magnitudes > 1e38).any()
        assert np.signbit(values[values == 0]).any()
        assert not np.signbit(values[values == 0]).all()
    if op.spikes is None:
        return
    everything = replace(op, outputs=tuple(step.output for step in assignments(op)))
    values = {**feeds, **dict(zip(everything.outputs, by_onnx(everything, feeds), strict=True))}
    sides = next(step.inputs for step in assignments(op) if step.operation == "GreaterOrEqual")
    assert (values[sides[0]] == values[sides[1]]).sum() > 100
    assert 0.05 < values[op.spikes].mean() < 0.95


@pytest.mark.parametrize("op", [op for op in NEURONS if op.integers], ids=lambda op: op.name)
def test_the_whole_numbers_are_hard(op):
    """Every rounding and both signs are met, products come close to 2³¹, and membranes lie on their thresholds."""
    feeds = hard_numbers(op)
    everything = replace(op, outputs=tuple(step.output for step in assignments(op) if step.kind == "whole"))
    casts = "".join(f"\n    seen_{name} = Cast <to = 1> ({name})" for name in everything.outputs)
    seen = replace(op, outputs=tuple(f"seen_{name}" for name in everything.outputs), body=op.body + casts)
    values = dict(zip(everything.outputs, by_onnx(seen, feeds), strict=True))
    assert np.abs(values["numerator"]).max() > 2.0**29
    assert (values["rest"] > 0).mean() > 0.3
    assert ((values["rest"] > 0) & (values["numerator"] < 0)).mean() > 0.1  # rounded down, not towards zero
    assert (values["leak"] > values["quotient"]).sum() > 100  # at least ℓ
    if op.spikes is not None:
        assert (values["whole_next"] == values["whole_threshold"]).sum() > 100
    if "most" in op.inputs:
        assert set(np.unique(values["several"])) == set(range(8))
