"""What callers get: runs, steps, states as values, counts, refusals of wrong inputs, and an engine that chooses."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.state import State, check_state
from axonnx.runtime.model import load

from .every import NAMES
from .small_networks import STEPS

ENGINES = (*NAMES, "auto")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("mode", ["mfa", "stochastic", "sampled"])
def test_steps_give_the_bits_of_the_run(engine, mode, exported):
    case = exported("recurrent", mode)
    model, x = load(case.path, engine), case.input(6, 2, 0.3)
    whole, state = model.run(x, seed=5), model.initial_state(2)
    stepper = model.stepper(model.initial_state(2), seed=5)
    for frame in x:
        state, result = model.step(state, frame, seed=5)
        totals = stepper.step(frame)
    assert np.array_equal(result.member_logits, whole.member_logits)
    assert np.array_equal(totals / np.float32(6), whole.member_logits)
    assert all(np.array_equal(stepper.state.arrays[name], value) for name, value in whole.state.arrays.items())
    assert state.step == stepper.state.step == 6


@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_is_a_value_that_any_engine_takes_up(engine, exported, tmp_path):
    case = exported("two-branches")
    x = case.input(8, 3, 0.3)
    first = load(case.path, engine)
    half = first.run(x[:4]).state
    before = {name: array.copy() for name, array in half.arrays.items()}
    np.savez(tmp_path / "state.npz", **{name.replace("/", "|"): array for name, array in half.arrays.items()})
    first.run(x[4:], state=half)
    assert all(np.array_equal(half.arrays[name], array) for name, array in before.items())
    with np.load(tmp_path / "state.npz") as kept:
        state = State(4, {name.replace("|", "/"): kept[name] for name in kept.files})
    expected = load(case.path, "numpy").run(x).logits
    for other in ENGINES:
        assert np.array_equal(load(case.path, other).run(x[4:], state=state).logits, expected)


def test_wrong_states_are_refused(exported):
    program = load(exported("recurrent").path, "numpy").program
    arrays = dict(load(exported("recurrent").path, "numpy").initial_state(2).arrays)
    name = "spikes/hidden.0.neuron"
    for change, text in (
        ({name: arrays[name][:, :3]}, "expected float32"),
        ({name: arrays[name] + 0.5}, "other values than 0 and 1"),
        ({"membrane/readout": np.full((2, 5), np.nan, np.float32)}, "holds NaN or infinity"),
        ({"other": arrays[name]}, "Use a state of this file"),
    ):
        with pytest.raises(AxonnxError, match=text):
            check_state(program, State(0, {**arrays, **change}))


def test_a_delay_line_holds_what_sums_were_certified_for(exported):
    model = load(exported("two-branches").path, "numpy")
    arrays, name = dict(model.initial_state(2).arrays), "delayed/late"
    check_state(model.program, State(0, {**arrays, name: arrays[name] + np.float32(0.75)}))
    for wrong in (0.3, 1.25):
        with pytest.raises(AxonnxError, match=r"'delayed/late' holds other values than graded ≤ 1, 2\^-2"):
            check_state(model.program, State(0, {**arrays, name: arrays[name] + np.float32(wrong)}))


@pytest.mark.parametrize("engine", ENGINES)
def test_wrong_inputs_are_refused_with_the_reason(engine, exported):
    model = load(exported("mlp").path, engine)
    fine = np.zeros((4, 2, 23), np.float32)
    for value in (np.nan, np.inf, 0.5, 4.0, -7.0):
        wrong = fine.copy()
        wrong[3, 1, 7] = value
        with pytest.raises(
            AxonnxError, match=rf"the input \[3, 1, 7\] is {value}; the contract allows integers up to ±3"
        ):
            model.run(wrong)
    for wrong, text in (
        (fine[..., :20], r"the input has shape \[4, 2, 20\]; expected \['T', 'B', 23\]"),
        (fine[0], "the input has shape"),
        (fine[:0], "without empty axes"),
        (fine.astype(np.float64), "the input is float64; expected float32 or integers"),
        (fine.astype(str), "expected float32 or integers"),
    ):
        with pytest.raises(AxonnxError, match=text):
            model.run(wrong)
    assert np.array_equal(model.run(fine.astype(np.uint8)).logits, model.run(fine).logits)
    with pytest.raises(AxonnxError, match="the state has 3 samples, but the input has 2"):
        model.run(fine, state=model.initial_state(3))
    with pytest.raises(AxonnxError):
        model.step(model.initial_state(2), np.full((2, 23), np.nan, np.float32))


def test_normalisation_through_time_ends_with_its_tables(exported):
    model = load(exported("mlp-bntt").path, "native")
    x = np.zeros((199, 1, 23), np.float32)
    state = model.run(x).state
    state, _ = model.step(state, x[0])
    with pytest.raises(AxonnxError, match="parameters for 200 time steps; this run reaches step 201"):
        model.step(state, x[0])


def test_images_have_no_steps(exported):
    case = exported("binary-resnet")
    model, x = load(case.path, "native"), case.input(1, 3, 0.5)
    assert model.run(x).logits.shape == (3, 5)
    with pytest.raises(AxonnxError, match="without time steps"):
        model.step(model.initial_state(3), x)


def test_prepared_values_are_centred_and_scaled(exported):
    model = load(exported("mlp").path, "numpy")
    assert np.array_equal(model.prepare(np.full((1, 1, 23), 2, np.uint8)), np.full((1, 1, 23), 2, np.float32))


def test_an_ensembles_doubts(exported):
    case = exported("mlp", "sampled")
    result = load(case.path, "native").run(case.input(30, 4, 0.4))
    assert result.member_logits.shape == (2, 4, 5)
    assert np.allclose(result.probabilities.sum(-1), 1)
    assert (result.mutual_information > 0).all()
    assert (result.mutual_information <= result.entropy).all()
    assert load(exported("mlp").path, "native").run(case.input(3, 1, 0.4)).mutual_information is None


def test_the_same_noise_whatever_the_chunks_and_threads(exported):
    case = exported("recurrent", "stochastic")
    x = case.input(20, 7, 0.3)
    whole = load(case.path, "native", threads=3).run(x, seed=9)
    alone = load(case.path, "native").run(x[:, 4:5], seed=9, samples=[4])
    assert np.array_equal(whole.logits[4:5], alone.logits)
    assert not np.array_equal(whole.logits, load(case.path, "native").run(x, seed=10).logits)


def test_calls_from_many_threads_do_not_mix(exported):
    case = exported("two-branches")
    model, inputs = load(case.path, "native"), [case.input(20, 1, 0.3, seed) for seed in range(8)]
    expected = [model.run(x).logits for x in inputs]
    found: dict[int, bool] = {}

    def work(number):
        found[number] = all(np.array_equal(model.run(inputs[number]).logits, expected[number]) for _ in range(20))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == dict.fromkeys(range(8), True)


def test_auto_is_the_native_engine(exported):
    assert load(exported("mlp").path).engine.name == ("native" if "native" in NAMES else "ort")


def test_a_workspace_that_another_thread_took_in_between_is_made_anew(exported):
    class TakenInBetween(list):
        """Seems to hold a workspace, as it did a moment ago."""

        def __bool__(self):
            return True

        def __len__(self):
            return 1

    case = exported("mlp")
    model, x = load(case.path, "native"), np.zeros((4, 2, 23), np.float32)
    expected = model.run(x).logits
    model.engine._workspaces = TakenInBetween()
    assert np.array_equal(model.run(x).logits, expected)


def test_unknown_engines_and_threads(exported):
    with pytest.raises(AxonnxError, match="expected one of auto, native, numpy, ort"):
        load(exported("mlp").path, "tpu")
    with pytest.raises(AxonnxError, match="threads is 0"):
        load(exported("mlp").path, threads=0)


def test_a_program_can_be_read(exported):
    text = str(load(exported("recurrent").path, "numpy").program)
    assert "input  events [23] graded ≤ 3" in text
    assert "LIF" in text
    assert "one exact sum" in text
    assert "next/spikes/hidden.0.neuron [70] spikes" in text


WITHOUT = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"{name} is blocked", name=name)
sys.meta_path.insert(0, Refuse())
import axonnx.native
from pathlib import Path
axonnx.native._FILE = Path(sys.argv[2]) if sys.argv[2] else axonnx.native._FILE
import numpy as np
from axonnx.runtime.model import load
x = np.ones((3, 1, 23), np.float32)
logits = [load(sys.argv[1], engine).run(x, seed=2).logits for engine in ("auto", "numpy", "ort")]
assert all(np.array_equal(logits[0], other) for other in logits)
print(load(sys.argv[1]).engine.name)
"""


@pytest.mark.parametrize("core", ["", "/nowhere/axonnx_core.so"])
def test_without_torch_and_without_the_core(exported, core):
    path = str(exported("recurrent", "stochastic").path)
    done = subprocess.run([sys.executable, "-c", WITHOUT, path, core], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ("native" if "native" in NAMES and not core else "ort")
    assert done.stderr.count("installed without its native core. Install a C compiler") == bool(core)


def test_importing_the_runtime_imports_nothing_heavy():
    heavy = "{'numpy', 'onnx', 'onnxruntime', 'pydantic'}"
    code = f"import sys, axonnx.runtime; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("engine", [*NAMES, "auto"])
@pytest.mark.parametrize("step", [-(10**12), -1, 10**12, 2**63, STEPS, 1.5, "3", None])
def test_a_state_outside_the_known_steps_is_refused(exported, engine, step):
    files = exported("mlp-bntt")
    model = load(files.path, engine)
    state = State(step, model.initial_state(1).arrays)
    with pytest.raises(AxonnxError, match=r"the state is after step|this run reaches step"):
        model.run(files.input(1, 1, 0.5), state=state)
    with pytest.raises(AxonnxError, match=r"the state is after step|this run reaches step"):
        model.stepper(state).step(files.input(1, 1, 0.5)[0])


@pytest.mark.parametrize("engine", [*NAMES, "auto"])
def test_a_stepper_stops_at_the_last_known_step(exported, engine):
    files = exported("mlp-bntt")
    model = load(files.path, engine)
    x = files.input(STEPS, 1, 0.3)
    done = model.run(x[:-1])
    stepper = model.stepper(done.state)
    stepper.step(x[-1])
    with pytest.raises(AxonnxError, match=f"parameters for {STEPS} time steps; this run reaches step {STEPS + 1}"):
        stepper.step(x[-1])
    assert stepper.state.step == STEPS


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize("array", [np.zeros((2, 5), np.float32), np.zeros(5), [[0.0] * 5], 3.0])
def test_a_state_of_other_arrays_is_refused(exported, engine, array):
    files = exported("mlp")
    model = load(files.path, engine)
    arrays = dict(model.initial_state(1).arrays)
    name = next(name for name in arrays if name.startswith("total/"))
    with pytest.raises(AxonnxError, match=r"state"):
        model.run(files.input(1, 1, 0.5), state=State(0, {**arrays, name: array}))
