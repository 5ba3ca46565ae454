"""Every network, collapsed in every way, in every form: all engines give torch's bits, whole or in chunks."""

import numpy as np
import pytest

from axonnx.runtime.model import load

from ...compilers import needs_compiler
from ..codegen.c.machine import Machine
from ..codegen.js.node import needs_node, node
from .comparing import Comparison, as_values
from .every import NAMES
from .small_networks import CASES, RECIPES

ENGINES = NAMES
SETTINGS = [(7, 0.3), (1, 0.05), (1, 1.0)]  # batch, density


def noise_of(model, x, batch):
    if not model.program.noises:
        return {}
    steps = len(x) if model.contract.kind == "spiking" else 1
    drawn = model.noise(3, range(batch), 0, steps)
    return drawn if model.contract.kind == "spiking" else {name: value[0] for name, value in drawn.items()}


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_engines_give_the_bits_of_torch(name, mode, exported):
    case, total = exported(name, mode), Comparison()
    models = [load(path, engine) for path in case.files.values() for engine in ENGINES]
    for batch, density in SETTINGS:
        x = case.input(case.recipe.steps, batch, density, seed=batch)
        expected = case.on_torch(x, noise_of(models[0], x, batch))
        for model in models:
            total.add(expected, as_values(model.run(x, seed=3, trace=True), case.recipe.spiking))
    total.hold(case.recipe.spiking)


@needs_node
@pytest.mark.parametrize(("name", "mode"), CASES)
def test_javascript_gives_the_bits_of_numpy(name, mode, exported):
    case, total = exported(name, mode), Comparison()
    model = load(case.path, "numpy")
    for density in (0.05, 0.4, 1.0):
        x = case.input(12, 1, density, seed=2)
        expected = model.run(x, seed=2**40 + 3, samples=[7], trace=True)
        found = node().trace(model.program, x[:, 0] if case.recipe.spiking else x, seed=2**40 + 3, sample=7)
        last = {"logits": found.pop("logits")[-1]}
        total.add({name: trace[:, 0] for name, trace in expected.traces.items()}, found)
        total.add({"logits": expected.member_logits[:, 0]}, last)
    total.hold(case.recipe.spiking)


@pytest.fixture(scope="module")
def machine(exported):
    """All of them as C, in one library."""
    programs = {as_name(name, mode): load(exported(name, mode).path, "numpy").program for name, mode in CASES}
    return Machine(programs, quick=True)


def as_name(name, mode):
    return f"{name}-{mode}".replace("-", "_")


@needs_compiler
@pytest.mark.parametrize(("name", "mode"), CASES)
def test_plain_c_gives_the_bits_of_numpy(name, mode, exported, machine):
    case, total = exported(name, mode), Comparison()
    model = load(case.path, "numpy")
    for density in (0.05, 0.4, 1.0):
        x = case.input(12, 1, density, seed=2)
        expected = model.run(x, seed=2**40 + 3, samples=[7], trace=True)
        found = machine.trace(as_name(name, mode), x[:, 0] if case.recipe.spiking else x, seed=2**40 + 3, sample=7)
        last = {"logits": found.pop("logits")[-1]}
        total.add({name: trace[:, 0] for name, trace in expected.traces.items()}, found)
        total.add({"logits": expected.member_logits[:, 0]}, last)
    total.hold(case.recipe.spiking)


@pytest.mark.parametrize(("name", "mode"), [(name, mode) for name, mode in CASES if RECIPES[name].spiking])
def test_chunks_give_the_bits_of_the_whole(name, mode, exported):
    case = exported(name, mode)
    x = case.input(12, 2, 0.4)
    for engine in ENGINES:
        model = load(case.path, engine)
        whole, state, spikes = model.run(x, seed=3, trace=True), None, []
        for low, high in ((0, 1), (1, 2), (2, 7), (7, 12)):
            part = model.run(x[low:high], seed=3, state=state, trace=True)
            state = part.state
            spikes.append(part.traces)
        assert np.array_equal(part.member_logits, whole.member_logits)
        for trace, values in whole.traces.items():
            assert np.array_equal(np.concatenate([chunk[trace] for chunk in spikes]), values)
        for key, value in whole.state.arrays.items():
            assert np.array_equal(state.arrays[key], value)


@pytest.mark.parametrize(("name", "mode"), [(n, m) for n, m in CASES if m in ("mfa", "stochastic")])
def test_counts_agree_between_engines(name, mode, exported):
    case = exported(name, mode)
    x = case.input(case.recipe.steps, 3, 0.3)
    plain = load(case.path, "numpy").run(x, seed=1, trace=True)
    for engine in set(ENGINES) - {"numpy", "ort"}:
        fast = load(case.path, engine).run(x, seed=1)
        for kind in ("spikes", "operations"):
            ours, theirs = getattr(plain.activity, kind), getattr(fast.activity, kind)
            assert ours.keys() == theirs.keys()
            assert all(np.array_equal(ours[key], theirs[key]) for key in ours)
    for layer, counts in plain.activity.spikes.items():
        assert np.array_equal(
            counts, plain.traces[f"spikes/{layer}"].sum(axis=(0, *range(2, plain.traces[f"spikes/{layer}"].ndim)))
        )


def test_silence_and_saturation(exported):
    case = exported("recurrent")
    models = [load(case.path, engine) for engine in ENGINES]
    for x in (np.zeros((200, 1, 23), np.float32), np.full((200, 7, 23), 3, np.float32)):
        expected = case.on_torch(x, {})
        for model in models:
            found = as_values(model.run(x, trace=True))
            assert all(np.array_equal(found[name], value) for name, value in expected.items())


def test_the_comparison_bites():
    total = Comparison()
    one = {"spikes/a": np.ones(3, np.float32), "membrane/a": np.ones(3, np.float32), "logits": np.ones(3, np.float32)}
    other = {**one, "membrane/a": np.nextafter(one["membrane/a"], np.float32(2))}
    total.add(one, other)
    with pytest.raises(AssertionError, match="differ"):
        total.hold()
