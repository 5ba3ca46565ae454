"""A file that is not what it says, in the ways files go wrong: each is caught, and located."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

Edit = Callable[[onnx.ModelProto], None]


def scan_body(model: onnx.ModelProto) -> onnx.GraphProto:
    return next(a.g for node in model.graph.node if node.op_type == "Scan" for a in node.attribute if a.name == "body")


def constants(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    yield from scan_body(model).initializer


def edited(source: Path, target: Path, edit: Edit) -> Path:
    model = onnx.load(source)
    edit(model)
    onnx.save(model, target)
    return target


def change(name: str, how: Callable[[np.ndarray], None]) -> Edit:
    def edit(model: onnx.ModelProto) -> None:
        tensor = next(tensor for tensor in constants(model) if tensor.name == name)
        array = numpy_helper.to_array(tensor).copy()
        how(array)
        tensor.CopyFrom(numpy_helper.from_array(array, name))

    return edit


def flip_lowest_bit(array: np.ndarray, index: int = 7) -> None:
    flat = array.reshape(-1).view(np.uint32)
    flat[index] ^= 1


def flip_first_lowest_bit(array: np.ndarray) -> None:
    flip_lowest_bit(array, 0)


def move_by_one_grid_step(grid: int) -> Callable[[np.ndarray], None]:
    def move(array: np.ndarray) -> None:
        array.reshape(-1)[7] -= array.dtype.type(2.0**-grid) * np.sign(array.reshape(-1)[7])

    return move


def raise_threshold(array: np.ndarray) -> None:
    array[...] = array + np.float32(0.25)


def failing_stage(result: dict) -> dict:
    return next(stage for stage in result["stages"] if not stage["ok"])


FINE = ("--weights", "float32")


def test_one_flipped_weight_bit_is_off_the_grid_and_named(exported, verify, tmp_path):
    path = edited(exported(*FINE), tmp_path / "bit.onnx", change("hidden.0.synapse.weight", flip_lowest_bit))
    code, result = verify(path)
    assert (code, result["verdict"]) == (1, "different")
    assert "hidden.0.synapse" in failing_stage(result)["lines"][-1]


def test_a_weight_one_grid_step_away_is_found_in_the_structure_and_in_the_running_network(exported, verify, tmp_path):
    from axonnx.runtime.format.model_file import read_model_file

    grid = next(s.grid for s in read_model_file(exported(*FINE)).contract.synapses if s.name == "hidden.0.synapse")
    change_weight = change("hidden.0.synapse.weight", move_by_one_grid_step(grid))
    code, result = verify(edited(exported(*FINE), tmp_path / "step.onnx", change_weight))
    assert code == 1
    assert "'hidden.0.synapse.weight'[0, 7]" in failing_stage(result)["lines"][-1]


def test_an_integer_weight_that_is_off_by_one_is_found_in_the_structure(exported, verify, tmp_path):
    change_weight = change("hidden.0.synapse.weight/int16", move_by_one_grid_step(0))
    code, result = verify(edited(exported(), tmp_path / "integer.onnx", change_weight))
    assert code == 1
    assert "'hidden.0.synapse.weight'[0, 7]" in failing_stage(result)["lines"][-1]


def test_another_step_of_integer_weights_is_off_the_grid_and_named(exported, verify, tmp_path):
    change_step = change("hidden.0.synapse.weight/step", flip_first_lowest_bit)
    code, result = verify(edited(exported(), tmp_path / "unit.onnx", change_step))
    assert (code, result["verdict"]) == (1, "different")
    assert "hidden.0.synapse" in failing_stage(result)["lines"][-1]


def test_another_threshold_is_caught_and_the_first_wrong_spike_located(exported, verify, tmp_path):
    path = edited(exported(), tmp_path / "theta.onnx", change("hidden.1.neuron.threshold", raise_threshold))
    code, result = verify(path)
    first = result["first_divergence"]
    assert code == 1
    assert "hidden.1.neuron.threshold" in failing_stage(result)["lines"][-1]
    assert first["layer"] == "hidden.1.neuron"
    assert first["step"] >= 0
    assert len(first["neuron"]) == 1
    assert first["distance"] is not None


def test_another_tie_rule_is_refused_by_name(exported, verify, tmp_path):
    def edit(model: onnx.ModelProto) -> None:
        body = next(entry for entry in model.functions if entry.name == "LIF")
        next(node for node in body.node if node.op_type == "GreaterOrEqual").op_type = "Greater"

    code, result = verify(edited(exported(), tmp_path / "tie.onnx", edit))
    assert code == 1
    assert "LIF" in failing_stage(result)["lines"][-1]


def test_two_swapped_layers_are_caught(exported, verify, tmp_path):
    def edit(model: onnx.ModelProto) -> None:
        lifs = [node for node in scan_body(model).node if node.op_type == "LIF"]
        first, second = lifs[0].input[4], lifs[1].input[4]  # thresholds
        decays = lifs[0].input[3], lifs[1].input[3]
        lifs[0].input[3], lifs[1].input[3] = decays[1], decays[0]
        lifs[0].input[4], lifs[1].input[4] = second, first

    code, result = verify(edited(exported(), tmp_path / "swap.onnx", edit))
    assert code == 1
    assert failing_stage(result)["lines"]


def test_time_shifted_by_one_step_is_caught(exported, verify, tmp_path):
    """The second layer hears the first one's spikes of the step before."""

    def edit(model: onnx.ModelProto) -> None:
        body = scan_body(model)
        gemm = next(node for node in body.node if node.name == "hidden.1.synapse")
        assert gemm.input[0] == "next/spikes/hidden.0.neuron"
        gemm.input[0] = "spikes/hidden.0.neuron"

    code, result = verify(edited(exported(), tmp_path / "late.onnx", edit))
    assert code == 1
    assert result["first_divergence"]["layer"] == "hidden.1.neuron"


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.99])
def test_truncated_files_fail_with_the_reason(keep, exported, verify, tmp_path):
    path = tmp_path / "short.onnx"
    data = exported().read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    code, result = verify(path)
    assert code == 1
    assert "short.onnx" in failing_stage(result)["lines"][-1]


def test_a_file_of_another_checkpoint_is_told_apart(exported, verify, run_folder, tmp_path):
    def edit(model: onnx.ModelProto) -> None:
        entry = next(entry for entry in model.metadata_props if entry.key == "axonnx")
        start = entry.value.index('"checkpoint":"') + len('"checkpoint":"')
        entry.value = entry.value[:start] + "0" * 64 + entry.value[start + 64 :]

    code, result = verify(edited(exported(), tmp_path / "other.onnx", edit))
    assert code == 1
    assert any("contract.provenance.checkpoint is '000000" in line for line in failing_stage(result)["lines"])


def test_what_differs_beside_the_graph_is_named(exported, verify, tmp_path):
    def describe(model: onnx.ModelProto) -> None:
        model.doc_string = "another file"

    code, result = verify(edited(exported(), tmp_path / "described.onnx", describe))
    assert code == 1
    assert failing_stage(result)["lines"][-1].endswith("beside it is not: doc_string")
