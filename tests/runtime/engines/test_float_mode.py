"""Denormal numbers in engines: the same bits in a process that flushes them, whose mode stays as it was."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from axonnx.runtime.engines.float_mode import flushes, in_default_mode
from axonnx.runtime.engines.state import State
from axonnx.runtime.model import load

from .every import NAMES

FILE = Path(__file__).parents[3] / "runtime" / "doctor" / "recurrent-int8.onnx"


@pytest.fixture
def flushing():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush")
    yield
    torch.set_flush_denormal(False)


def halved() -> float:
    return float((np.full(8, 2.0**-126, np.float32) * np.float32(0.5))[3])


def test_a_function_sees_denormal_numbers_and_the_mode_is_set_back(flushing):
    assert flushes()
    assert halved() == 0.0
    assert in_default_mode(halved)() != 0.0
    assert flushes()


def test_the_mode_is_set_back_after_a_fault(flushing):
    @in_default_mode
    def fall() -> None:
        raise ValueError("the engine")

    with pytest.raises(ValueError, match="the engine"):
        fall()
    assert flushes()


def test_nothing_changes_without_flushing():
    assert not flushes()
    assert in_default_mode(halved)() == 2.0**-127


def without_biases(target: Path) -> Path:
    """A recurrent network whose membranes decay to nothing in silence."""
    model = onnx.load(FILE)
    scan = next(a.g for node in model.graph.node for a in node.attribute if a.HasField("g"))
    for tensor in [*model.graph.initializer, *scan.initializer]:
        if tensor.name.endswith(".bias"):
            tensor.CopyFrom(numpy_helper.from_array(0 * numpy_helper.to_array(tensor), tensor.name))
    onnx.save(model, target)
    return target


def after_a_silence(engine) -> bytes:
    """Every state of a hundred steps that begin with membranes near the smallest normal number."""
    state, found = engine.initial_state(1), b""
    arrays = {name: np.full_like(a, 0 if "spikes" in name else 1e-36) for name, a in state.arrays.items()}
    silence = np.zeros((1, 1, *engine.program.contract.input.shape), np.float32)
    for _ in range(100):
        state = engine.advance(State(0, arrays, engine.program), silence, {}).state
        arrays = dict(state.arrays)
        found += b"".join(np.ascontiguousarray(arrays[name]).tobytes() for name in sorted(arrays))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_membrane_has_the_same_bits_after_a_long_silence(name, tmp_path):
    engine = load(without_biases(tmp_path / "silent.onnx"), name).engine
    expected = after_a_silence(engine)
    flushed = torch.set_flush_denormal(True)
    try:
        found = after_a_silence(engine)
    finally:
        torch.set_flush_denormal(False)
    assert flushed
    assert found == expected
