"""Files in integers are proved by formulas of their own: a fault of the export is caught although it does it again."""

import numpy as np
import pytest

import axonnx.export.graph.integers as integers

WEIGHTS = ("--weights", "integer8")


@pytest.mark.parametrize("weights", ["integer8", "integer4", "integer2"])
def test_a_file_in_integers_is_verified(exported, verify, weights):
    code, found = verify(exported("--weights", weights))
    assert (code, found["mismatches"]) == (0, 0)
    assert {each["key"] for each in found["implementations"]} >= {"training", "onnxruntime", "numpy", "native"}
    assert found["compared"]["spikes"] > 10_000


def wrong_leak(decay, *rest, **named):
    found = LEAK(decay, *rest, **named)
    name = next(name for name in found if name.endswith("lost"))
    return found | {name: found[name] + 1}


def rounded_down(decay, *rest, **named):
    found = LEAK(decay, *rest, **named)
    return {name: 0 * value if "round_below" in name else value for name, value in found.items()}


def at_once(module, op, unit, threshold):
    found = RESETS(module, op, unit, threshold)
    return found | {"taken": found["late_taken"], "late_taken": found["taken"]}


LEAK, RESETS = integers.leak, integers._resets
FAULTS = {
    "weights are cut off": ("_levels", lambda weights, step, top: (weights / step).trunc().clamp(-top, top), "weight'"),
    "one level is missing": ("_levels", lambda w, step, top: (w / step).round().clamp(1 - top, top - 1), "weight'"),
    "a leak is one off": ("leak", wrong_leak, "lost'"),
    "negative membranes are rounded up": ("leak", rounded_down, "round_below'"),
    "a spike resets at once": ("_resets", at_once, "taken'"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_export_is_caught_although_it_is_done_again(name, exported, verify, monkeypatch, tmp_path):
    place, fault, text = FAULTS[name]
    monkeypatch.setattr(integers, place, fault)
    code, found = verify(exported("--weights", "integer8", "--seed", str(1 + list(FAULTS).index(name))))
    stages = {stage["name"]: stage for stage in found["stages"]}
    assert code == 1
    assert stages["structure"]["ok"]  # the same fault, made twice, has the same bytes
    assert not stages["collapse"]["ok"]
    assert text in " ".join(stages["collapse"]["lines"])


def test_the_step_of_another_scale_is_caught(exported, verify, monkeypatch):
    step = integers._Layer.step
    monkeypatch.setattr(integers._Layer, "step", lambda layer, power: 4 * step(layer, power))
    code, found = verify(exported("--weights", "integer8", "--seed", "99"))
    assert code == 1
    assert "are nearer to" in str(found["stages"])


def test_faults_change_something():
    import torch

    decay, some = torch.tensor(0.9), torch.linspace(-1, 1, 50)
    assert not torch.equal(wrong_leak(decay)["lost"], LEAK(decay)["lost"])
    assert np.any(FAULTS["weights are cut off"][1](some, 0.1, 127).numpy() != integers._levels(some, 0.1, 127).numpy())
