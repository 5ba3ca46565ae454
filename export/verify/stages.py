"""``verify_file``: all that is compared between a run and a file, and the verdict.

training      what the training process wrote down, against the data, the checkpoint and the run's figures
structure     the file's own consistency; its contract as the run gives it; its graph, byte for byte
operators     each spike operator alone, in every implementation
collapse      constants, grids, membranes and spikes against the untouched training network, within derived bounds
engines       every implementation of the collapsed network, bit for bit
recordings    events from a file through reader, bins, engine and decision, bit for bit
runtime       noise, windows, saved sessions, early exit and probabilities against plain ones
values        of a regression, in place of the next two: its values beside the training network's
decisions     accuracy against the training network's, sample by sample
accuracies    what the file states of itself, measured again
certainty     temperature and margins on the samples that they were fitted on, none of which may be a test sample
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch

from axonnx.base.errors import AxonnxError
from axonnx.export.verify.accuracy import (
    as_trained,
    check_decisions,
    check_stated,
    compare_decisions,
    compare_values,
)
from axonnx.export.verify.calibration_check import CALIBRATED_ON, check_calibration
from axonnx.export.verify.certainty_check import check_certainty
from axonnx.export.verify.collapse_check import CollapseCheck, references
from axonnx.export.verify.free_running import (
    check_ensemble_results,
    check_operators,
    compare_running,
    draw_noise,
)
from axonnx.export.verify.integers import integer_members
from axonnx.export.verify.recordings_check import check_recordings
from axonnx.export.verify.runtime_check import check_runtime
from axonnx.export.verify.structure import Findings, Subject, check_structure, open_subject, other_network
from axonnx.export.verify.training_check import check_training
from axonnx.export.ways import Sampled
from axonnx.models import Network
from axonnx.runtime.format.contract import AccuracyContract
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.measure.comparison import ONE, Comparison
from axonnx.runtime.measure.samples import BATCH, Samples
from axonnx.runtime.measure.verify_result import Accuracy, Compared, Implementation, Stage, VerifyResult
from axonnx.train.trained import Origin, Trained, open_run

Tell = Callable[[str], None]


@dataclass(frozen=True)
class VerifySettings:
    """What is looked at, as ``verify_file`` takes it."""

    part: str
    samples: int
    limit: int | None
    recordings: int
    seed: int
    shard: tuple[int, int] | None
    data: Samples | None = None

    def __post_init__(self) -> None:
        for name in ("samples", "limit", "recordings"):
            if (number := getattr(self, name)) is not None and number < 1:
                raise AxonnxError(f"{name} is {number}; a verification of nothing proves nothing: expected 1 or more")
        if self.shard is not None and not 0 <= self.shard[0] < self.shard[1]:
            raise AxonnxError(f"shard {self.shard[0]}/{self.shard[1]}; expected I/N with I from 0 to N−1")


@dataclass
class _Stages:
    """The stages so far; a refusal inside one is its failure."""

    tell: Tell
    done: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[Findings]:
        self.tell(f"{name} …")
        found = Findings()
        try:
            yield found
        except AxonnxError as refusal:
            found.fail(str(refusal))
        self.done.append(Stage(name=name, ok=found.ok, lines=tuple(found.lines)))

    @property
    def ok(self) -> bool:
        return all(stage.ok for stage in self.done)


def verify_file(
    model: str | Path,
    run: str | Path,
    *,
    part: str = "test",
    samples: int = 64,
    limit: int | None = None,
    recordings: int = 16,
    seed: int = 0,
    shard: tuple[int, int] | None = None,
    data: Samples | None = None,
    tell: Tell = lambda _line: None,
) -> VerifyResult:
    """Prove that ``model`` is what the run folder ``run`` was trained to be, or say what is wrong.

    Of the data's ``part``, every implementation runs ``samples`` of them, decisions are compared on ``limit`` (all,
    unless given), and ``recordings`` go from their file to a decision; each choice is stratified and seeded. ``shard``
    (i, n) looks at every n-th sample only, beginning with number i. ``data`` is run instead of that part, and only the
    way from a recording to its decision is taken from the run's own.
    """
    settings = VerifySettings(part, samples, limit, recordings, seed, shard, data)
    return verify_origin(model, open_run(run), settings, tell)


def verify_origin(model: str | Path, trained: Origin, settings: VerifySettings, tell: Tell) -> VerifyResult:
    """As `verify_file`, of a file that comes from a run or from a network in memory."""
    _check_part(trained, settings)
    stages, opened = _Stages(tell), []
    if isinstance(trained, Trained) and _first(settings):
        with stages.stage("training") as found:
            check_training(trained, settings.limit, found)
    with stages.stage("structure") as found:
        opened = [open_subject(model, trained)]
        check_structure(opened[0], found)
    if not opened:
        return _result(model, trained, settings, stages.done)
    (subject,) = opened
    if (other := other_network(subject)) is not None:
        if subject.contract.provenance.checkpoint != trained.provenance().checkpoint:
            raise AxonnxError(
                f"{model} does not come from {trained.name or 'this network'}: {other}. Give the run that it was "
                f"exported from"
            )
        stages.done[-1] = Stage(name="structure", ok=False, lines=(other, *stages.done[-1].lines))
        return _result(model, trained, settings, stages.done)
    with stages.stage("operators") as found:
        check_operators(subject, found)
    return _run(subject, model, settings, stages, tell)


def _run(subject: Subject, model: str | Path, settings: VerifySettings, stages: _Stages, tell: Tell) -> VerifyResult:
    trained = subject.trained
    some, whole = (_sharded(_data(trained, settings, n), settings) for n in (settings.samples, settings.limit))
    comparisons: list[Comparison] = []
    scores: list[Accuracy] = []
    stated: list[AccuracyContract] = []
    paired = None
    integers = subject.contract.dynamics == "integer"
    check = CollapseCheck(subject.file, trained.network, trained.arriving, subject.thresholds)
    members: Mapping[str, Network] = check.members
    with stages.stage("collapse") as found:
        if integers:  # no bounds are needed: the training network in whole numbers must have the same bits
            members = integer_members(subject, found)
            found.lines.append("every constant is the training network's in whole numbers, by formulas of their own")
        else:
            _collapse(subject, check, some, settings.seed, found)
    with stages.stage("engines") as found:
        comparisons = compare_running(subject, some, settings.seed, tell)
        for line in check_ensemble_results(subject, some):
            found.fail(line)
        for entry in comparisons:
            if entry.differing:
                found.fail(str(entry.first))
        found.lines.append(f"{len(comparisons)} implementations against the collapsed network, bit for bit")
    if isinstance(trained, Trained):  # tensors come from no file
        with stages.stage("recordings") as found:
            check_recordings(subject, trained.prepared, settings.part, settings.recordings, settings.seed, found)
        if _first(settings) and subject.contract.units is None:
            with stages.stage("runtime") as found:
                check_runtime(subject, trained.prepared, settings.part, settings.seed, found)
    if subject.contract.units is not None:
        with stages.stage("values") as found:
            compare_values(subject, members, whole, found)
        return _result(model, trained, settings, stages.done, comparisons)
    with stages.stage("decisions") as found:
        scores, paired = compare_decisions(subject, members, whole, settings.seed)
        check_decisions(scores, paired, found)
    if _first(settings):
        with stages.stage("accuracies") as found:
            stated = check_stated(subject, tell, found)
        if subject.contract.certainty is not None:
            with stages.stage("certainty") as found:
                check_certainty(subject, found)
    result = _result(model, trained, settings, stages.done, comparisons)
    return result.model_copy(update={"accuracy": tuple(scores), "stated": tuple(stated), "paired": paired})


def _first(settings: VerifySettings) -> bool:
    """Whether what does not depend on a shard's samples is looked at: once, by the first shard."""
    return settings.shard is None or settings.shard[0] == 0


def _collapse(subject: Subject, check: CollapseCheck, data: Sampled, seed: int, found: Findings) -> None:
    check.constants()
    if subject.thresholds:
        trained, how = subject.trained, subject.contract.collapse
        rounded = how.weights != "float32"  # thresholds were matched with the weights that the file stores
        (plain,) = as_trained(subject, references(trained.network, how, {}), rounded=rounded).values()
        inputs = [x for x, _ in trained.data("train", CALIBRATED_ON)]
        check.found.faults += check_calibration(trained.network, plain, subject.thresholds, inputs, how.seed or 0)
    done = 0
    for batch, (x, labels) in enumerate(data):
        check.running(x, draw_noise(subject, x.shape, seed + batch), done)
        done += len(labels)
    found.ok = not check.found.faults
    found.lines += check.found.lines()


def _check_part(trained: Origin, settings: VerifySettings) -> None:
    if settings.part not in trained.parts:
        raise AxonnxError(f"the data set has no part {settings.part!r}; it has {sorted(trained.parts)}")


def _data(trained: Origin, settings: VerifySettings, limit: int | None) -> Sampled:
    """Batches of the run's data, or of the data that was given."""
    if settings.data is None:
        return trained.data(settings.part, limit)
    frames, labels, *_ = settings.data.choose(limit)
    if labels is None:
        raise AxonnxError(f"{settings.data.source}: holds no labels; decisions are compared with them")
    x = torch.from_numpy(to_input(frames.swapaxes(0, 1), trained.arriving))
    timed = trained.arriving.steps is not None
    return [
        (x[:, at : at + BATCH] if timed else x[0, at : at + BATCH], torch.from_numpy(labels[at : at + BATCH]))
        for at in range(0, len(labels), BATCH)
    ]


def _sharded(data: Sampled, settings: VerifySettings) -> Sampled:
    """Of every batch the samples of the shard."""
    if settings.shard is None:
        return data
    first, count = settings.shard
    kept, seen = [], 0
    for x, labels in data:
        chosen = [number for number in range(len(labels)) if (seen + number) % count == first]
        seen += len(labels)
        if chosen:
            kept.append((x[:, chosen] if x.dim() > 4 else x[chosen], labels[chosen]))
    if not kept:
        raise AxonnxError(f"shard {first}/{count} holds none of {seen} samples; use fewer shards, or more samples")
    return kept


def _result(
    model: str | Path,
    trained: Origin,
    settings: VerifySettings,
    stages: list[Stage],
    comparisons: list[Comparison] | None = None,
) -> VerifyResult:
    comparisons = comparisons or []
    divergences = [entry.first for entry in comparisons if entry.first is not None]
    divergences.sort(key=lambda first: math.inf if first.step is None else first.step)  # spikes before logits
    provenance = trained.provenance()
    return VerifyResult(
        model=str(model),
        run=trained.name,
        file_sha256=hashlib.sha256(Path(model).read_bytes()).hexdigest(),
        checkpoint_sha256=provenance.checkpoint,
        data_sha256=provenance.data_digest if settings.data is None else settings.data.sha256,
        shard=None if settings.shard is None else "{}/{}".format(*settings.shard),
        verdict="equal" if all(stage.ok for stage in stages) else "different",
        mismatches=sum(entry.differing for entry in comparisons),
        compared=Compared(**{kind: sum(entry.compared[kind] for entry in comparisons) for kind in ONE}),
        stages=tuple(stages),
        implementations=tuple(_implementation(entry) for entry in comparisons),
        first_divergence=divergences[0] if divergences else None,
        differences=tuple(difference for entry in comparisons for difference in entry.differences),
    )


def _implementation(entry: Comparison) -> Implementation:
    """For JSON."""
    return Implementation(
        key=entry.key,
        name=entry.name,
        samples=entry.samples,
        max_logit_difference=entry.max_logit_difference,
        **entry.counts(),
    )
