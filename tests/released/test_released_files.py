"""Files of every release give the bits that they gave when they were written, on every engine, for ever.

All but ``version-1`` also keep hashes of all traces and states and counts of activity, which generated C and JavaScript
must give too. ``version-1-operators`` was written before the compiled engines were replaced; operators that came later
have a folder of their own.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from axonnx.runtime.engines.choose import ENGINES
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.model import load

from ..runtime.codegen.c.machine import Machine, needs_compiler
from ..runtime.codegen.js.node import needs_node, node
from .record import differences, digest, read_record

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("version-*/*.onnx"))
GOLDEN = [path for path in FILES if path.parent.name != "version-1"]
WITHOUT_NOISE = ("mfa", "int8", "int16")  # in the names of single networks that a plain runtime can run as they are
MOVES = {"Reshape", "Concat", "Pad", "Slice", "Transpose", "Expand"}
INSTRUCTIONS = {"Linear", "Conv", "AveragePool", "MaxPool", "StepRow", "Add", "Sub", "Mul", *MOVES}

every_engine = pytest.mark.parametrize(
    "engine", [pytest.param(name, marks=needs_compiler) if name == "c" else name for name in ENGINES]
)
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
every_golden_file = pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)


# Operators that no release has had: a golden file comes with the release that freezes them.
UNRELEASED = {"IntegerLIF", "IntegerBurst", "IntegerCurrent", "IntegerSum"}


def test_files_of_every_kind_are_there():
    assert len(FILES) - len(GOLDEN) >= 7
    assert len(GOLDEN) >= 50
    assert all(path.with_suffix(".npz").is_file() for path in FILES)


@every_engine
@every_file
def test_a_released_file_keeps_its_bits(path, engine):
    kept = np.load(path.with_suffix(".npz"))
    found = load(path, engine).run(kept["x"], seed=int(kept["seed"])).member_logits
    assert found.dtype == kept["logits"].dtype == np.float32
    assert np.array_equal(found, kept["logits"])
    assert found.any()


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if any(word in path.stem for word in WITHOUT_NOISE)],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_stock_onnxruntime_runs_it(path):
    kept = np.load(path.with_suffix(".npz"))
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    found = session.run(["logits"], {session.get_inputs()[0].name: kept["x"]})[0]
    assert np.array_equal(found, kept["logits"][0])


@every_engine
@every_golden_file
def test_a_golden_file_keeps_its_traces_states_and_counts(path, engine):
    kept, model = read_record(path.with_suffix(".npz")), load(path, engine)
    result = model.run(kept.x, seed=int(kept.seed), trace=True)
    assert differences(kept, result) == []
    assert result.activity is not None or engine in ("ort", "auto")
    spiking = model.contract.kind == "spiking"
    for sample in range(kept.logits.shape[1]):  # silent, sparse, paused, dense: each by itself takes paths of its own
        part = slice(sample, sample + 1)
        x = kept.x[:, part] if spiking else kept.x[part]
        alone = model.run(x, seed=int(kept.seed), samples=[sample], trace=True)
        assert differences(kept, alone, part) == [], f"sample {sample}"


@every_engine
@every_golden_file
def test_threads_and_steps_give_what_was_kept(path, engine):
    kept, model = read_record(path.with_suffix(".npz")), load(path, engine, threads=3)
    assert differences(kept, model.run(kept.x, seed=int(kept.seed), trace=True)) == []
    if model.contract.kind == "spiking":
        stepper = model.stepper(model.initial_state(kept.x.shape[1]), seed=int(kept.seed))
        for frame in kept.x:
            totals = stepper.step(frame)
        assert np.array_equal(model.contract.logits_of(totals, len(kept.x)), kept.logits)


@pytest.fixture(scope="module")
def programs():
    return {path: load(path, "numpy").program for path in GOLDEN}


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "vectors"])
def machine(programs, request):
    """All golden files as C, in one library: for a microcontroller and for a desktop."""
    named = {as_name(path): program for path, program in programs.items()}
    return Machine(named, quick=request.param, vectors=request.param)


def as_name(path):
    return path.stem.replace("-", "_")


def check_target(kept, program, trace):
    """Hold what ``trace`` gives for each sample's values, as a camera delivers them, to what was kept."""
    spiking, given = program.contract.kind == "spiking", program.contract.input
    values = kept.x * np.float32(2.0**given.shift) + np.float32(given.centre)
    for sample in range(kept.logits.shape[1]):
        frames = values[:, sample] if spiking else values[sample : sample + 1]
        found = trace(frames, seed=int(kept.seed), sample=sample)
        assert np.array_equal(found.pop("logits")[-1], kept.logits[:, sample])
        assert found.keys() == kept.traces.keys()
        wrong = [name for name in found if not np.array_equal(digest(found[name]), kept.traces[name][sample])]
        assert wrong == [], f"sample {sample}"


@needs_compiler
@every_golden_file
def test_generated_c_gives_what_was_kept(path, machine, programs):
    kept = read_record(path.with_suffix(".npz"))
    check_target(kept, programs[path], lambda *given, **noise: machine.trace(as_name(path), *given, **noise))


@needs_node
@every_golden_file
def test_generated_javascript_gives_what_was_kept(path, programs):
    kept = read_record(path.with_suffix(".npz"))
    check_target(kept, programs[path], lambda *given, **noise: node().trace(programs[path], *given, **noise))


def test_golden_files_have_every_operator_and_instruction(programs):
    found = {instruction.op for program in programs.values() for instruction in program.instructions}
    assert found == {*OPS, *INSTRUCTIONS} - UNRELEASED


def test_every_layer_of_every_firing_operator_fires_and_rests(programs):
    firing = dict.fromkeys((name for name, op in OPS.items() if op.spikes and op.neurons and name not in UNRELEASED), 0)
    for path, program in programs.items():
        kept = read_record(path.with_suffix(".npz"))
        moments = len(kept.x) * kept.x.shape[1] if program.contract.kind == "spiking" else len(kept.x)
        assert {layer.name for layer in program.layers} == kept.spikes.keys()
        for layer in program.layers:
            spikes = int(kept.spikes[layer.name].sum())
            assert 0 < spikes < moments * layer.size, f"{path.stem}: {layer.name}"
            firing[layer.op] += spikes
    assert len(firing) == 9
    assert min(firing.values()) > 100, firing


def test_inputs_are_silent_sparse_dense_graded_and_negative(programs):
    graded = 0
    for path, program in programs.items():
        x = read_record(path.with_suffix(".npz")).x
        samples = x.swapaxes(0, 1) if program.contract.kind == "spiking" else x
        silent, sparse, paused, dense = (np.count_nonzero(sample) / sample.size for sample in samples)
        assert (silent, dense) == (0, 1)
        assert 0 < sparse < 0.1 < paused < 0.4
        graded += x.max() > 1 and x.min() < 0
    assert graded > 30


@pytest.mark.parametrize("kind", ["logits", "traces", "states", "spikes", "operations"])
def test_one_flipped_bit_is_found(kind):
    path = HERE / "version-1-operators" / "general-mfa.onnx"
    kept = read_record(path.with_suffix(".npz"))
    result = load(path, "numpy").run(kept.x, seed=int(kept.seed), trace=True)
    assert differences(kept, result) == []
    if kind == "logits":
        flipped = kept.logits.copy()
        flipped.view(np.uint32)[0, 2, 1] ^= 1
        expected, changed = "logits", flipped
    else:
        name, values = next(iter(getattr(kept, kind).items()))
        flipped = values.copy()
        flipped[3] ^= 1
        expected, changed = f"{kind} {name}", {**getattr(kept, kind), name: flipped}
    assert differences(replace(kept, **{kind: changed}), result) == [expected]
