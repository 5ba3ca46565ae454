"""Sequence form and step form of one network: the same bits, names that follow the torch modules, a fixed file."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.export.write import write_model
from axonnx.models import MEAN_FIELD, Replay
from axonnx.runtime.format.opset import OPS, function

from ..running import Exported, Values, export, exported
from ..small_networks import Recipe, build, counts, input_of

RECIPES = {
    "spiking-mlp mfa": (Recipe("spiking-mlp"), CollapseSettings()),
    "recurrent-snn stochastic": (Recipe("recurrent-snn", granularity="weight"), CollapseSettings("stochastic")),
    "spiking-resnet stochastic": (Recipe("spiking-resnet", reset="zero"), CollapseSettings("stochastic")),
    "spiking-resnet sg-bn": (Recipe("spiking-resnet", "sg-bn", shortcut="conv"), CollapseSettings()),
    "recurrent-snn sampled": (Recipe("recurrent-snn"), CollapseSettings("sampled", 3)),
    "spiking-mlp int8": (Recipe("spiking-mlp"), CollapseSettings(weights="int8")),
    "spiking-mlp float32": (Recipe("spiking-mlp"), CollapseSettings(weights="float32")),
}


@pytest.fixture(scope="module", params=RECIPES)
def both(request) -> tuple[Exported, Exported]:
    """A collapsed network as a sequence and as a step."""
    recipe, settings = RECIPES[request.param]
    collapsed = collapse_network(build(recipe), input_of(recipe), settings)
    return exported(collapsed, form="sequence"), exported(collapsed, form="step")


def stream(step: Exported, x: torch.Tensor, noises: dict[str, torch.Tensor]) -> tuple[Values, dict[str, list]]:
    """Run a step file step by step: the last states, and every trace of every step."""
    inputs = {entry.name: entry.shape[1:] for entry in step.session.get_inputs()}
    names = [entry.name for entry in step.session.get_outputs()]
    taken = {"events", "step", *noises}
    states = {name: np.zeros((x.shape[1], *shape), np.float32) for name, shape in inputs.items() if name not in taken}
    traces: dict[str, list] = {name: [] for name in names if name.startswith("trace/")}
    for t in range(len(x)):
        feeds = {"events": x[t].numpy(), **states, **{name: noise[t].numpy() for name, noise in noises.items()}}
        if "step" in inputs:
            feeds["step"] = np.array([t], np.int64)
        found = dict(zip(names, step.session.run(None, feeds), strict=True))
        states = {name.removeprefix("next/"): value for name, value in found.items() if name.startswith("next/")}
        for name, values in traces.items():
            values.append(found[name])
    return states, traces


def test_step_by_step_gives_the_bits_of_the_sequence(both):
    sequence, step = both
    x = counts(sequence.contract.input, 3, 40)
    noises = sequence.noises(x)
    whole = sequence.on_onnxruntime(x, noises)
    states, traces = stream(step, x, noises)
    totals = [states[name] for name in states if name.startswith("total/")]
    logits = np.stack([total / np.float32(len(x)) for total in totals])
    expected = whole["member_logits"] if len(totals) > 1 else whole["logits"][None]
    assert np.array_equal(logits, expected)
    assert traces
    for name, values in traces.items():
        assert np.array_equal(np.stack(values), whole[name]), name


def test_states_after_the_last_step_are_torchs(both):
    """Variances too, which no trace shows."""
    _, step = both
    x = counts(step.contract.input, 2, 12)
    noises = {name: torch.randn(len(x), *noise.shape) for name, noise in step.noises(x[0]).items()}
    states, _ = stream(step, x, noises)
    compared = 0
    for member in step.collapsed.members:
        drawn = {name.removeprefix("noise/"): noise for name, noise in noises.items()}
        with torch.no_grad():
            after = member.network(x, Replay(drawn) if drawn else MEAN_FIELD).state
        for layer, state in after.layers.items():
            for kind, value in state._asdict().items():
                if value is not None:
                    assert np.array_equal(states.pop(f"{kind}/{member.prefix}{layer}"), value.numpy())
                    compared += value.numel()
    assert states == {}
    assert compared > 0


def test_length_and_batch_are_open_in_one_session(both):
    sequence, _ = both
    for steps, batch in [(1, 1), (17, 2), (5, 9), (1, 4)]:
        x = counts(sequence.contract.input, batch, steps)
        found = sequence.on_onnxruntime(x, sequence.noises(x))
        logits = found.get("logits", found.get("member_logits"))
        assert logits.shape[-2:] == (batch, 5)


def test_names_are_the_torch_modules(both):
    sequence, step = both
    layers = dict(sequence.collapsed.members[0].network.named_modules())
    prefixes = [member.prefix for member in sequence.collapsed.members]
    for name in [entry.name for entry in step.session.get_inputs() if "/" in entry.name]:
        kind, _, layer = name.partition("/")
        assert kind in ("membrane", "spikes", "variance", "total", "noise")
        assert any(layer.removeprefix(prefix) in layers for prefix in prefixes), name
    outputs = [entry.name for entry in step.session.get_outputs() if entry.name.startswith("next/")]
    states = [entry.name for entry in step.session.get_inputs() if entry.name.partition("/")[0] not in FEEDS]
    assert outputs == [f"next/{name}" for name in states]
    body = next(node for node in sequence.model.graph.node if node.op_type == "Scan").attribute[0].g
    ops = {node.name: node.op_type for node in body.node}
    assert all(ops[layer.name] == layer.op for layer in sequence.contract.layers)
    weights = {tensor.name for tensor in body.initializer}
    names = {c.weight if c.stored_as == "float32" else f"{c.weight}/{c.stored_as}" for c in sequence.contract.synapses}
    assert names <= weights


FEEDS = ("events", "noise", "step")


def test_the_contract_names_what_the_graph_has(both):
    for one in both:
        graph = one.model.graph
        states = [state for layer in one.contract.layers for state in layer.states]
        noises = [layer.noise for layer in one.contract.layers if layer.noise is not None]
        scan = [node for node in graph.node if node.op_type == "Scan"]
        inputs = [value.name for value in (scan[0].attribute[0].g if scan else graph).input]
        assert sorted(name for name in inputs if name.partition("/")[0] not in (*FEEDS, "events")) == sorted(states)
        assert sorted(v.name for v in graph.input if v.name.startswith("noise/")) == sorted(noises)
        assert graph.input[0].name == one.contract.input.name == "events"


@pytest.mark.parametrize("mode", ["mfa", "sampled", "stochastic"])
@pytest.mark.parametrize("network", ["binary-mlp", "binary-resnet"])
def test_binary_networks_have_no_time_axis_and_no_states(network, mode):
    recipe = Recipe(network)
    made = export(build(recipe), input_of(recipe), CollapseSettings(mode, 2 if mode == "sampled" else 1))
    graph = made.model.graph
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "B"
    assert not [node for node in graph.node if node.op_type == "Scan"]
    assert all(layer.states == () and layer.decay is None for layer in made.contract.layers)
    assert made.contract.input.steps is None
    assert (made.contract.kind, made.contract.logits) == ("binary", "direct")


@pytest.mark.parametrize("form", ["sequence", "step"])
def test_traces_are_there_on_demand_alone(form):
    recipe = Recipe("recurrent-snn")
    collapsed = collapse_network(build(recipe), input_of(recipe))
    plain, traced = (exported(collapsed, form=form, trace=trace) for trace in (False, True))
    names = {output.name for output in traced.session.get_outputs()} - {o.name for o in plain.session.get_outputs()}
    layers = [layer.name for layer in traced.contract.layers if layer.op == "LIF"]
    assert names == {f"trace/{kind}/{layer}" for kind in ("spikes", "membrane") for layer in layers}
    assert not [output.name for output in plain.session.get_outputs() if "trace" in output.name]
    if form == "sequence":
        x = counts(input_of(recipe), 3, 20)
        assert np.array_equal(plain.on_onnxruntime(x, {})["logits"], traced.on_onnxruntime(x, {})["logits"])


def test_versions_and_operators_are_as_stated(both):
    for one in both:
        model = one.model
        assert model.ir_version == 10
        assert {entry.domain: entry.version for entry in model.opset_import} == {"": 20, "ai.axonnx": 1}
        graphs = [model.graph, *(a.g for node in model.graph.node for a in node.attribute if a.HasField("g"))]
        used = {node.op_type for graph in graphs for node in graph.node if node.domain == "ai.axonnx"}
        assert {entry.name for entry in model.functions} == used
        assert used <= set(OPS)
        assert all(entry == function(entry.name) for entry in model.functions)
        random = {"RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial", "RandomUniform", "RandomUniformLike"}
        inexact = {"Sqrt", "Exp", "Erf", "Sigmoid", "Tanh"}
        assert not {node.op_type for graph in graphs for node in graph.node} & (random | inexact)


def test_exporting_twice_writes_the_same_bytes(tmp_path):
    for name in ("spiking-resnet sg-bn", "recurrent-snn sampled", "recurrent-snn stochastic"):
        recipe, settings = RECIPES[name]
        files = [export(build(recipe), input_of(recipe), settings).model for _ in range(2)]
        paths = [tmp_path / f"{number}.onnx" for number in range(2)]
        sizes = [write_model(model, path) for model, path in zip(files, paths, strict=True)]
        assert paths[0].read_bytes() == paths[1].read_bytes(), name
        assert sizes[0] == paths[0].stat().st_size
        assert onnx.load(paths[0]) == files[0]


def test_another_process_writes_the_same_bytes():
    """Also where Python's hashes are others."""
    recipe, settings = Recipe("recurrent-snn", granularity="weight"), CollapseSettings("stochastic")
    here = hashlib.sha256(export(build(recipe), input_of(recipe), settings).data).hexdigest()
    code = (
        "import hashlib; from tests.export.graph.test_forms import *; torch.set_num_threads(1); "
        "recipe, settings = RECIPES['recurrent-snn stochastic']; "
        "print(hashlib.sha256(export(build(recipe), input_of(recipe), settings).data).hexdigest())"
    )
    there = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "4711"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert there.stdout.strip() == here, there.stderr
