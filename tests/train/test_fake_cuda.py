"""Whole training runs as a GPU would see them: no waits in a step, everything on one device, few launches and bytes.

Simulated: the tensors are fake, so nothing is computed and nothing is timed. See ``fake_cuda.py``.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton")
CXX = shutil.which("g++") or shutil.which("clang++")
if CXX is None or sys.platform != "linux":
    pytest.skip("no C++ compiler for the pretended device", allow_module_level=True)

HERE, TORCH = Path(__file__).parent, Path(torch.__file__).parent
MLP = {"model.network": "spiking-mlp", "model.hidden": [8, 8], "data.bins": 4, "optimiser.batch_size": 8}
ALL = MLP | {
    "regulariser.weight": "auto",
    "optimiser.clip_norm": 0.1,
    "optimiser.samples": 2,
    "optimiser.accumulate": 2,
}
RESNET = {"model.network": "spiking-resnet", "model.widths": [4, 8], "model.blocks": 1, "data.bins": 2}
CASES = {
    **{f"mlp {n}": {"base": "digits-saccade", "settings": ALL, "batches": n} for n in (2, 5)},
    **{name: {"base": "digits-saccade", "settings": MLP, "plant": name} for name in ("item", "cpu")},
    "recurrent": {"base": "digits-saccade", "settings": MLP | {"model.network": "recurrent-snn"}},
    "residual": {"base": "digits-saccade", "settings": RESNET | {"optimiser.batch_size": 8}},
    "binary": {"base": "digits-static", "settings": {"model.network": "binary-mlp", "model.hidden": [8, 8]}},
    "step of 100": {"network": "RecurrentSNN", "shape": [100, 32, 700]},
    "step of 20": {"network": "RecurrentSNN", "shape": [20, 32, 700]},
    "step in torch": {"network": "RecurrentSNN", "shape": [20, 32, 700], "backend": "torch"},
    "step of ResNet-20": {"network": "SpikingResNet", "shape": [16, 8, 2, 32, 32]},
}


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict:
    """What every case left in its ledger; one process for all of them, because torch comes after the guards there."""
    guards = tmp_path_factory.mktemp("guards")
    for name, libraries in (("accelerator", []), ("device", ["-lc10", "-ltorch_cpu"])):
        made = [CXX, "-shared", "-fPIC", "-O0", "-std=c++20", f"-I{TORCH}/include", str(HERE / f"guard/{name}.cpp")]
        linked = [f"-L{TORCH}/lib", *libraries, f"-Wl,-rpath,{TORCH}/lib", "-o", str(guards / f"{name}.so")]
        subprocess.run([*made, *linked], check=True, capture_output=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("TRITON_INTERPRET", None)
    told = subprocess.run(
        [sys.executable, "-m", "tests.train.fake_cuda", str(guards), json.dumps(CASES)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=HERE.parents[1],
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout.splitlines()[-1])


def test_every_run_stays_on_its_device(found):
    assert {name: case["fault"] for name, case in found.items() if "fault" in case} == {}
    for name, case in found.items():
        assert case["launches"] > 50, name  # something happened


def test_an_epoch_waits_as_often_for_many_batches_as_for_few(found):
    """λ, clipping, finite checks, running means, several passes: nothing of a step waits for the device."""
    few, many = found["mlp 2"], found["mlp 5"]
    assert few["waits"] == many["waits"]
    assert few["waits"]  # an epoch's row is read
    assert many["launches"] > few["launches"] + 100
    steps = {place for place, count in many["on_cpu"].items() if few["on_cpu"].get(place) != count}
    assert all("firing.py" in place for place in steps), steps  # seeds alone are drawn on the CPU


@pytest.mark.parametrize(
    ("plant", "ledger", "name"), [("item", "waits", "_local_scalar_dense"), ("cpu", "on_cpu", "ones")]
)
def test_a_planted_fault_is_named_with_its_line(plant, ledger, name, found):
    """``.item()`` and a tensor on the CPU, in the total norm of a step; three batches. The line is the caller's."""
    source = (HERE.parents[1] / "train/loop.py").read_text("utf-8").splitlines()
    line = next(n for n, text in enumerate(source, 1) if "total = _total_norm(norms)" in text)
    assert found[plant][ledger][f"train/loop.py:{line} {name}"] == 3
    other = found["cpu" if plant == "item" else "item"]
    assert f"train/loop.py:{line} {name}" not in other[ledger]


def test_a_layer_is_a_launch_in_each_direction(found):
    assert found["step of 20"]["launches"] == found["step of 100"]["launches"]
    for name in ("recurrent_forward", "recurrent_backward"):
        assert found["step of 100"]["kernels"][name] == 2
    for name in ("forward", "backward"):
        assert found["step of ResNet-20"]["kernels"][name] == 19
    assert "leaky_sum" in found["step of 100"]["kernels"]


@pytest.mark.parametrize(
    ("case", "launches", "megabytes"), [("step of 100", 180, 235), ("step of ResNet-20", 1100, 5050)]
)
def test_budgets_of_a_step(case, launches, megabytes, found):
    """Forwards and backwards, without Adam. Both budgets are what is there now; step by step it was 6,319 and 7,858."""
    assert found[case]["waits"] == {}
    assert launches * 0.9 < found[case]["launches"] <= launches
    assert megabytes * 0.9e6 < found[case]["bytes"] <= megabytes * 1e6


def test_without_kernels_launches_grow_with_steps(found):
    assert found["step in torch"]["launches"] > 60 * 20
    assert "recurrent_forward" not in found["step in torch"]["kernels"]


def test_counts_travel_as_bytes(found):
    """Events of a batch are sent as uint8: three batches and the test part, no float32."""
    sent = sum(count for place, count in found["item"]["copies"].items() if "feed.py" in place)
    samples, frame, label = 3 * 8 + 8, 4 * 2 * 32 * 32, 8
    assert sent == samples * (frame + label)
