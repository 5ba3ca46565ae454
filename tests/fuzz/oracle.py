"""What a model file must do: be refused with an ``AxonnxError``, or give the same bits in every engine and stock."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.model import Model, load
from axonnx.runtime.result import RunResult
from tests.fuzz.harness import Finding

ENGINES = ("numpy", "native", "ort")
BATCH, STEPS = 2, 3
MOST = 2**20  # numbers in a network's buffers; larger ones are loaded, not run


def judge(path: Path) -> str:
    """Load and run the file at ``path`` in every engine and as it is."""
    warnings.simplefilter("ignore")  # numbers that overflow in all engines alike are no finding
    models, refusals = {}, {}
    for engine in ENGINES:
        try:
            models[engine] = load(path, engine)  # type: ignore[arg-type]
        except AxonnxError as fault:
            refusals[engine] = str(fault)
    if models and refusals:
        raise Finding(f"loaded by {sorted(models)}, refused by {refusals}")
    if refusals:
        return "refused"
    if sum(buffer.size for buffer in models["numpy"].program.buffers.values()) < MOST:
        _compare(models, path)
    return "accepted"


def _compare(models: dict[str, Model], path: Path) -> None:
    model = models["numpy"]
    known = model.program.steps_known
    steps = STEPS if known is None else min(STEPS, known)
    for density in (0.3, 1.0):
        x = _input(model, steps, density)
        results = {engine: _values(models[engine], x) for engine in ENGINES}
        results["stock"] = _stock(model, path, x)
        for engine, values in results.items():
            for name, array in values.items():
                _same(name, engine, array, results["numpy"][name])


def _input(model: Model, steps: int, density: float) -> NDArray[np.float32]:
    """Numbers that the contract admits."""
    contract = model.contract.input
    rng = np.random.default_rng(1)
    shape = (steps, BATCH, *contract.shape) if model.contract.kind == "spiking" else (BATCH, *contract.shape)
    most = min(contract.largest, 3)
    counts = rng.integers(-most, most + 1, shape) * (rng.random(shape) < density)
    return (counts * contract.unit).astype(np.float32)


def _values(model: Model, x: NDArray[np.float32]) -> dict[str, Any]:
    """Everything that a run tells."""
    result: RunResult = model.run(x, trace=True)
    found: dict[str, Any] = {"logits": result.member_logits}
    found |= {f"state {name}": array for name, array in result.state.arrays.items()}
    found |= {f"trace {name}": array for name, array in result.traces.items()}
    if result.activity is not None:
        found |= {f"spikes {name}": counts for name, counts in result.activity.spikes.items()}
        found |= {f"operations {name}": counts for name, counts in result.activity.operations.items()}
    return found


def _stock(model: Model, path: Path, x: NDArray[np.float32]) -> dict[str, Any]:
    """The file as it is, in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return (
            _step_by_step(session, model, x)
            if model.contract.form == "step" and model.program.states
            else _whole(session, model, x)
        )
    except Exception as fault:
        raise Finding(f"accepted here; stock onnxruntime says: {type(fault).__name__}: {fault}") from None


def _whole(session: Any, model: Model, x: NDArray[np.float32]) -> dict[str, Any]:
    spiking = model.contract.kind == "spiking"
    noise = model.noise(0, range(BATCH), 0, len(x) if spiking else 1)
    feeds = {model.program.input: x} | {name: drawn if spiking else drawn[0] for name, drawn in noise.items()}
    names = [entry.name for entry in session.get_outputs()]
    found = dict(zip(names, session.run(None, feeds), strict=True))
    logits = found["member_logits"] if model.contract.collapse.members > 1 else found["logits"][None]
    traces = {f"trace {name[6:]}": value for name, value in found.items() if name.startswith("trace/")}
    return {"logits": logits} | {name: value if spiking else value[None] for name, value in traces.items()}


def _step_by_step(session: Any, model: Model, x: NDArray[np.float32]) -> dict[str, Any]:
    names = [entry.name for entry in session.get_outputs()]
    states = {name: np.zeros((BATCH, *model.program.buffers[name].shape), np.float32) for name in model.program.states}
    clocked = any(entry.name == "step" for entry in session.get_inputs())
    for step, frame in enumerate(x):
        noise = {name: drawn[0] for name, drawn in model.noise(0, range(BATCH), step, 1).items()}
        clock = {"step": np.array([step], np.int64)} if clocked else {}
        found = dict(
            zip(names, session.run(None, {model.program.input: frame, **states, **noise, **clock}), strict=True)
        )
        states = {name: found[f"next/{name}"] for name in states}
    totals = np.stack([states[name] for name in model.program.totals]) / np.float32(len(x))
    return {"logits": totals} | {f"state {name}": array for name, array in states.items()}


def _same(name: str, engine: str, found: Any, expected: Any) -> None:
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise Finding(f"{name}: {engine} gives {found.dtype} {found.shape}, numpy {expected.dtype} {expected.shape}")
    differing = ~((found == expected) | ((found != found) & (expected != expected)))
    if differing.any():
        at = tuple(int(axis[0]) for axis in np.nonzero(differing))
        raise Finding(f"{name} {at}: {engine} gives {found[at]!r}, numpy {expected[at]!r}; {differing.sum()} differ")
