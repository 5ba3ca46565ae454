"""Verification: the file against the training code, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from torch import Tensor

from axonnx.export.compare import Comparison
from axonnx.export.exporter import Collapsed, CollapseSettings, build_model, collapse_network
from axonnx.export.gap import Sampled, Score, predict_with, score
from axonnx.export.load_back import load_back
from axonnx.export.observe import Observed, of_engine, of_file, of_torch
from axonnx.export.op_check import check_op
from axonnx.models import Network, Sample
from axonnx.runtime.compile_program import compile_program
from axonnx.runtime.contract import Contract
from axonnx.runtime.engine import Engine
from axonnx.runtime.model_file import ModelFile, load_model
from axonnx.runtime.numpy_engine import NumpyEngine
from axonnx.runtime.opset import DOMAIN
from axonnx.runtime.ort_engine import OrtEngine
from axonnx.runtime.program import Program
from axonnx.runtime.step_graph import step_graph

Floats = NDArray[np.float32]
Tell = Callable[[str], None]
REFERENCE_SAMPLES = 2  # onnx.reference is slow; it runs the same file on the first samples


@dataclass
class Stage:
    """One part of the verification and what it found."""

    name: str
    ok: bool = True
    lines: list[str] = field(default_factory=list)

    def fail(self, line: str) -> None:
        """Note what is wrong."""
        self.ok = False
        self.lines.append(line)


@dataclass
class Verification:
    """Everything that was compared, and the verdict."""

    model: str
    stages: list[Stage] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    unrounded: Comparison | None = None

    @property
    def ok(self) -> bool:
        """Whether everything is equal."""
        return all(stage.ok for stage in self.stages) and all(c.differing == 0 for c in self.comparisons)

    def stage(self, name: str) -> Stage:
        """Begin another stage."""
        self.stages.append(Stage(name))
        return self.stages[-1]


@dataclass(frozen=True)
class Subject:
    """A file, the run it is said to come from, and what the run exports to today."""

    file: ModelFile
    program: Program
    network: Network  # as trained
    collapsed: Collapsed

    @property
    def contract(self) -> Contract:
        """The file's contract."""
        return self.file.contract

    def thresholds(self) -> dict[str, Floats]:
        """θ of every layer of neurons, by its name in the file."""
        return {
            member.prefix + name: module.threshold.numpy()
            for member in self.collapsed.members
            for name, module in member.network.named_modules()
            if isinstance(getattr(module, "threshold", None), Tensor)
        }


def check_structure(path: str, network: Network, checkpoint: str, stage: Stage) -> Subject:
    """The file's own consistency, and that it is byte for byte what the checkpoint exports to."""
    file = load_model(path)
    program = compile_program(file)
    contract = file.contract
    stage.lines.append(f"contract, operator bodies and {len(contract.synapses)} grid certificates hold")
    if contract.provenance.checkpoint not in (None, checkpoint):
        stage.fail(f"the file was made of checkpoint {contract.provenance.checkpoint}, the run holds {checkpoint}")
    how = contract.collapse
    settings = CollapseSettings(how.mode, how.members, how.seed or 0, how.prune, how.weights)
    thresholds = _file_thresholds(file) if how.calibrated else None
    collapsed = collapse_network(network, contract.input, settings, thresholds)
    traced = any(output.name.startswith("trace/") for output in file.proto.graph.output)
    again = build_model(collapsed, contract, traced)
    if again.SerializeToString(deterministic=True) == Path(path).read_bytes():
        stage.lines.append("the checkpoint exports to this very file, byte for byte")
    else:
        for line in _differences(again, file.proto):
            stage.fail(line)
    return Subject(file, program, network, collapsed)


def check_operators(subject: Subject, stage: Stage) -> None:
    """Every spike operator that the file uses."""
    names = sorted(entry.name for entry in subject.file.proto.functions if entry.domain == DOMAIN)
    total = 0
    for name in names:
        compared, different = check_op(name)
        total += compared
        for line in different:
            stage.fail(line)
    stage.lines.append(f"{', '.join(names)}: {total:,} numbers compared, ties and silence among them")


def compare_running(subject: Subject, data: Sampled, seed: int, tell: Tell) -> tuple[list[Comparison], Comparison]:
    """Every implementation on the same input; the collapsed module is the reference. Also the unrounded network."""
    timed = subject.contract.kind == "spiking"
    thresholds = subject.thresholds()
    comparisons: dict[str, Comparison] = {}
    unrounded = Comparison("training network, unrounded", timed)
    done = 0
    for batch, (x, labels) in enumerate(data):
        noise = draw_noise(subject, x.shape, seed + batch)
        reference = of_torch("collapsed module", _members(subject), x.numpy(), noise, gaps=False)
        for found in _implementations(subject, x.numpy(), noise, done):
            entry = comparisons.setdefault(found.name, Comparison(found.name, timed))
            part = reference if found.logits.shape == reference.logits.shape else _first(reference, found, timed)
            entry.add(part, found, thresholds, done)
        if len(subject.collapsed.members) == 1:
            plain = of_torch(unrounded.name, {"": subject.network}, x.numpy(), noise, gaps=True)
            unrounded.add(reference, plain, thresholds, done)
        done += len(labels)
        tell(f"compared {done} samples")
    return list(comparisons.values()), unrounded


def measure_accuracy(
    subject: Subject, data: Sampled, passes: int, seed: int, bayesian: bool, interval: Any
) -> list[Score]:
    """Accuracy of the file in the fastest engine, of the network as trained, and of the Bayesian predictive."""
    engine = engines(subject)[-1]
    scores = [score(f"the file ({engine.name})", _engine_predict(subject, engine, seed), data, interval)]
    scores.append(score("training network, mean-field", predict_with([subject.network]), data, interval))
    if bayesian:
        noise = Sample(torch.Generator().manual_seed(seed))
        scores.append(
            score(f"bayesian ({passes} passes)", predict_with([subject.network], noise, passes), data, interval)
        )
    return scores


def engines(subject: Subject) -> list[Engine]:
    """Every engine there is; the fastest last."""
    found: list[Engine] = [OrtEngine(subject.program, step_graph(subject.file)), NumpyEngine(subject.program)]
    try:
        from axonnx.runtime.numba_engine import NumbaEngine
    except ModuleNotFoundError:
        return found
    return [*found, NumbaEngine(subject.program)]


def draw_noise(subject: Subject, shape: tuple[int, ...], seed: int) -> dict[str, Floats]:
    """Standard-normal noise for every noise input of the file."""
    random = np.random.default_rng(seed)
    lead = shape[:2] if subject.contract.kind == "spiking" else shape[:1]
    layers = [layer for layer in subject.contract.layers if layer.noise]
    return {str(layer.noise): random.standard_normal((*lead, *layer.shape), np.float32) for layer in layers}


def _members(subject: Subject) -> dict[str, Network]:
    return {member.prefix: member.network for member in subject.collapsed.members}


def _implementations(subject: Subject, x: Floats, noise: Mapping[str, Floats], done: int) -> Iterator[Observed]:
    loaded = {member.prefix: load_back(subject.network, member.network) for member in subject.collapsed.members}
    yield of_torch("training network, file's weights", loaded, x, noise, gaps=True)
    if subject.contract.form == "sequence":
        session = _session(subject.file.proto)
        yield of_file("onnxruntime, the file", session, subject.contract, x, noise)
        if done == 0:
            small = _take(x, noise, subject.contract.kind == "spiking")
            yield of_file("onnx.reference, the file", _reference(subject.file.proto), subject.contract, *small)
    for engine in engines(subject):
        yield of_engine(engine, x, noise)


def _take(x: Floats, noise: Mapping[str, Floats], timed: bool) -> tuple[Floats, dict[str, Floats]]:
    part = (slice(None), slice(REFERENCE_SAMPLES)) if timed else (slice(REFERENCE_SAMPLES),)
    return x[part], {name: value[part] for name, value in noise.items()}


def _first(reference: Observed, found: Observed, timed: bool) -> Observed:
    """The reference's first samples, for an implementation that ran on those alone."""
    count = found.logits.shape[1]
    part = (slice(None), slice(count)) if timed else (slice(count),)
    return Observed(
        reference.name,
        {name: value[part] for name, value in reference.spikes.items()},
        {name: value[part] for name, value in reference.membranes.items()},
        reference.logits[:, :count],
    )


def _session(proto: onnx.ModelProto) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(names, feeds), strict=True))


def _reference(proto: onnx.ModelProto) -> Any:
    evaluator = ReferenceEvaluator(proto)
    return lambda feeds: dict(zip(evaluator.output_names, evaluator.run(None, feeds), strict=True))


def _engine_predict(subject: Subject, engine: Engine, seed: int) -> Callable[[Tensor], Tensor]:
    calls = iter(range(1 << 62))

    def predict(x: Tensor) -> Tensor:
        found = of_engine(engine, x.numpy(), draw_noise(subject, x.shape, seed + next(calls)))
        return torch.softmax(torch.from_numpy(found.logits), -1).mean(0)

    return predict


def _constants(proto: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    graphs = [proto.graph, *(a.g for node in proto.graph.node for a in node.attribute if a.HasField("g"))]
    return {tensor.name: numpy_helper.to_array(tensor) for graph in graphs for tensor in graph.initializer}


def _file_thresholds(file: ModelFile) -> dict[str, Tensor]:
    found = _constants(file.proto)
    names = [name for name in found if name.endswith(".threshold")]
    return {name.removesuffix(".threshold"): torch.from_numpy(found[name].copy()) for name in names}


def _differences(expected: onnx.ModelProto, found: onnx.ModelProto) -> list[str]:
    """What makes the file another one than the checkpoint's."""
    lines, ours, theirs = [], _constants(expected), _constants(found)
    for name in sorted(set(ours) | set(theirs)):
        if name not in ours or name not in theirs:
            lines.append(f"constant {name!r} is {'missing from' if name in ours else 'only in'} the file")
        elif ours[name].shape != theirs[name].shape:
            lines.append(f"constant {name!r} is {list(theirs[name].shape)}, expected {list(ours[name].shape)}")
        elif not np.array_equal(ours[name], theirs[name]):
            index = tuple(int(i) for i in np.argwhere(ours[name] != theirs[name])[0])
            count = int((ours[name] != theirs[name]).sum())
            lines.append(
                f"constant {name!r}{list(index)} is {theirs[name][index]!r}, the checkpoint gives "
                f"{ours[name][index]!r} ({count} of {ours[name].size} differ)"
            )
    return lines or ["the graph's nodes are not those that the checkpoint exports to"]
