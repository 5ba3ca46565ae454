"""A spike operator is whole: every part that a consumer looks up by its name is there."""

from collections.abc import Mapping

import pytest

from axonnx.export.collapse.ops import OPERATORS, operator_of
from axonnx.export.graph.ranges import SPIKE_OP_RANGES
from axonnx.export.verify.formulas import FORMULAS
from axonnx.runtime.codegen import rows
from axonnx.runtime.engines import numpy_engine
from axonnx.runtime.format.opset import OPS, SpikeOp
from axonnx.runtime.program.rules import SPIKE_RULES

PARTS: dict[str, Mapping] = {
    "the training code's formula: FORMULAS in export/verify/formulas.py": FORMULAS,
    "a torch operator: OPERATORS in export/collapse/ops.py": OPERATORS,
    "a range of its outputs: SPIKE_OP_RANGES in export/graph/ranges.py": SPIKE_OP_RANGES,
    "a rule for programs: SPIKE_RULES in runtime/program/rules.py": SPIKE_RULES,
    "a kernel in numpy: KERNELS in runtime/engines/numpy_engine.py": numpy_engine.KERNELS,
}


def missing(ops: Mapping[str, SpikeOp]) -> list[str]:
    """What operators lack."""
    return [f"{name} lacks {part}" for name in ops for part, held in PARTS.items() if name not in held]


def test_every_operator_is_whole():
    assert missing(OPS) == []
    assert {part: sorted(set(held) - set(OPS)) for part, held in PARTS.items() if set(held) - set(OPS)} == {}


def test_what_a_new_operator_lacks_is_named():
    found = missing({"Izhikevich": SpikeOp("Izhikevich", "", "", ("drive",), (), ("spikes",), "")})
    assert found == [f"Izhikevich lacks {part}" for part in PARTS]


def test_of_neurons_only_the_formula_is_written_by_hand():
    """Every other part is made from the definition."""
    neurons = [op for op in OPS.values() if op.neurons]
    assert len({SPIKE_OP_RANGES[op.name] for op in neurons}) == len({SPIKE_RULES[op.name] for op in neurons}) == 1
    steps = [f"INLINE mask step_{op.function}(" for op in neurons]
    assert [step for step in steps if rows.header().count(step) != 1] == []


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


@pytest.mark.parametrize("kind", rows.KINDS)
def test_c_reads_the_columns_of_a_row_by_its_names_and_a_row_fits_into_the_table(kind):
    prefix = {"ScanInput": "SCAN_INPUT", "StepRow": "STEP_ROW"}.get(kind.__name__, kind.__name__.upper())
    columns = [f"    {prefix}_{name} = {number},\n" for number, name in enumerate(kind._fields)]
    assert "".join(columns) in rows.header()
    assert kind._fields[0] == "code"
    assert len(kind._fields) <= rows.COLUMNS
