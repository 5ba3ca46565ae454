"""Networks in integers as firmware without a single operation on floats in a step: the logits of numpy, bit for bit."""

import re
import subprocess

import numpy as np
import pytest

from axonnx.compiling import compile_to
from axonnx.runtime.codegen.c.network_source import c_source, whole_units
from axonnx.runtime.model import load
from axonnx.runtime.program.compilation import compile_program

from ...export.graph.test_integers import exported, inputs
from ...export.small_networks import Recipe
from .firmware import decisions, needs_board, run_firmware

CASES = (
    (Recipe(), "integer8", "cortex-m3"),
    (Recipe(reset="zero", decay="of each neuron"), "integer4", "cortex-m4"),
    (Recipe(network="recurrent-snn"), "integer2", "cortex-m3"),
    (Recipe(delays="some"), "integer8", "cortex-m3"),
    (Recipe(network="spiking-resnet", stream="spikes", shortcut="conv"), "integer4", "cortex-m3"),
)
FLOATS = re.compile(r"__aeabi_(f|d|i2f|ui2f|l2f|ul2f)|__(add|sub|mul|div|fix|float)[a-z]*f")


@needs_board
@pytest.mark.parametrize(("recipe", "weights", "cpu"), CASES)
def test_firmware_gives_the_bits_of_numpy(recipe, weights, cpu, tmp_path):
    file = exported(recipe, tmp_path / "net.onnx", weights)
    model, x = load(file.path, "numpy"), inputs(file.contract)
    folder = compile_to(file.path, tmp_path / "board", "cortex-m").folder
    names = []
    for sample in range(x.shape[1]):
        names.append(f"{sample}.csv")
        np.savetxt(folder / names[-1], x[:, sample].reshape(len(x), -1), "%d", ",")
    found = decisions(run_firmware(folder, *names, cpu=cpu))
    for sample, (label, logits) in enumerate(found):
        expected = model.run(x[:, sample : sample + 1], samples=[sample])
        assert np.array_equal(logits, expected.member_logits[:, 0]), sample
        assert label == model.contract.classes[int(expected.logits[0].argmax())]
    assert len(found) == 6
    assert len({logits.tobytes() for _, logits in found}) > 3


@needs_board
def test_a_step_holds_no_operation_on_floats(tmp_path):
    """The core calls no function of soft floats; a core in floats, as a control, calls many."""
    called = {}
    for weights in ("integer8", "int8"):
        file = exported(Recipe(), tmp_path / f"{weights}.onnx", weights)
        folder = compile_to(file.path, tmp_path / weights, "cortex-m").folder
        subprocess.run(["make", "--silent", "-C", str(folder), "CPU=cortex-m3", "network_core.o"], check=True)
        listed = subprocess.run(
            ["arm-none-eabi-nm", "-u", str(folder / "network_core.o")], capture_output=True, text=True, check=True
        )
        called[weights] = sorted(set(FLOATS.findall(listed.stdout)))
    assert called["integer8"] == []
    assert called["int8"] != []


def test_fractions_stay_with_floats(tmp_path):
    """Inputs of 2⁻ˢ are no whole numbers: that network is written with floats, which give the same bits."""
    whole = compile_program(exported(Recipe(), tmp_path / "whole.onnx"))
    parts = compile_program(exported(Recipe(), tmp_path / "parts.onnx", shift=2))
    floats = compile_program(exported(Recipe(), tmp_path / "floats.onnx", "int8"))
    assert [whole_units(program) is None for program in (whole, parts, floats)] == [False, True, True]
    assert "typedef int32_t network_value" in c_source(whole, vectors=False)["network.h"]
    assert "typedef float network_value" in c_source(whole)["network.h"]
    assert "typedef float network_value" in c_source(parts, vectors=False)["network.h"]
