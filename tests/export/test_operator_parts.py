"""A spike operator is whole: every part that a consumer looks up by its name is there."""

from collections.abc import Mapping

import pytest

from axonnx.export.collapse.ops import OPERATORS, operator_of
from axonnx.export.grid.ranges import SPIKE_OP_RANGES
from axonnx.runtime.engines.reference import numpy_ops
from axonnx.runtime.engines.table import rows
from axonnx.runtime.format.opset import OPS, SpikeOp
from axonnx.runtime.program.spike_ops import SPIKE_RULES

PARTS: dict[str, Mapping] = {
    "a torch operator: @operator in export/collapse/ops.py": OPERATORS,
    "a range of its outputs: SPIKE_OP_RANGES in export/grid/ranges.py": SPIKE_OP_RANGES,
    "a rule for programs: SPIKE_RULES in runtime/program/spike_ops.py": SPIKE_RULES,
    "a kernel in numpy: @kernel in runtime/engines/reference/numpy_ops.py": numpy_ops.KERNELS,
    "a compiled kernel: KERNELS in runtime/engines/table/rows.py": rows.KERNELS,
}


def missing(ops: Mapping[str, SpikeOp]) -> list[str]:
    """What operators lack."""
    return [f"{name} lacks {part}" for name in ops for part, held in PARTS.items() if name not in held]


def test_every_operator_is_whole():
    assert missing(OPS) == []
    assert {part: sorted(set(held) - set(OPS)) for part, held in PARTS.items() if set(held) - set(OPS)} == {}


def test_what_a_new_operator_lacks_is_named():
    found = missing({"Izhikevich": SpikeOp("Izhikevich", "", "", ("drive",), ("spikes",), "")})
    assert found == [f"Izhikevich lacks {part}" for part in PARTS]


@pytest.mark.parametrize(
    ("name", "function", "parameters", "spikes", "membrane", "variance"),
    [
        ("Heaviside", "heaviside", ("threshold",), "spikes", "current", None),
        ("StochasticHeaviside", "stochastic_heaviside", ("threshold",), "spikes", "current", "variance"),
        ("LIF", "lif", ("decay", "threshold"), "next_spikes", "next_membrane", None),
        ("LIFToZero", "lif_to_zero", ("decay", "threshold"), "next_spikes", "next_membrane", None),
        (
            "StochasticLIFToZero",
            "stochastic_lif_to_zero",
            ("decay", "threshold", "base_variance"),
            "next_spikes",
            "next_membrane",
            "next_variance",
        ),
        ("LeakySum", "leaky_sum", ("decay",), None, None, None),
        ("RecurrentActivity", "recurrent_activity", (), None, None, None),
        ("PoolPairs", "pool_pairs", (), None, None, None),
    ],
)
def test_what_a_definition_says(name, function, parameters, spikes, membrane, variance):
    op = OPS[name]
    assert (op.function, op.parameters, op.spikes, op.membrane, op.variance) == (
        function,
        parameters,
        spikes,
        membrane,
        variance,
    )
    assert op.neurons == (name not in ("RecurrentActivity", "PoolPairs"))
    assert operator_of(OPERATORS[name]._opoverload) == name


def test_a_value_is_found_by_its_name_in_the_definition():
    op = OPS["StochasticHeaviside"]
    inputs, outputs = ("i", "v", "e", "t"), ("o",)
    assert [op.value(name, inputs, outputs) for name in ("current", "variance", "spikes")] == ["i", "v", "o"]


@pytest.mark.parametrize("kind", sorted(set(rows.KINDS.values()), key=lambda kind: kind.__name__))
def test_a_row_says_its_own_columns_and_fits_into_the_table(kind):
    columns = rows.columns(kind)
    assert [getattr(columns, name) for name in kind._fields] == list(range(len(kind._fields)))
    assert kind._fields[0] == "code"
    assert len(kind._fields) <= rows.COLUMNS
