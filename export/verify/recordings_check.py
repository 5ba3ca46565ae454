"""From a recording to a decision: the deployed path against the training path, bit for bit.

Recordings of the data set are read from their own files, or from a file written for the purpose where the data set
keeps none; they go through reader, bins, engine and decision in pieces of random length. The training path bins the
same recordings as training did and runs the collapsed network in torch. Logits and the name of the winner are equal.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from axonnx.export.verify.observe import of_torch
from axonnx.export.verify.plain_events import check_borders
from axonnx.export.verify.structure import Findings, Subject
from axonnx.runtime.binning.settings import INT64_MAX
from axonnx.runtime.frame_pipeline import FramePipeline
from axonnx.runtime.measure.samples import choose_samples
from axonnx.runtime.model import Model, load
from axonnx.runtime.readers import write_npz
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.frame_files import read_frames
from axonnx.runtime.streams.probabilities import mean_probabilities
from axonnx.runtime.streams.session import Session
from axonnx.runtime.streams.sources import FileSource
from axonnx.train.build import Prepared
from axonnx.train.data.recordings import Place, Recordings
from axonnx.train.data.splits import Data

Floats = NDArray[np.float32]
LARGEST_PIECE = 5000  # events


def check_recordings(subject: Subject, prepared: Prepared, part: str, count: int, seed: int, found: Findings) -> None:
    """Follow some samples of a part of the data set, chosen as everywhere, from their file to a decision."""
    data = prepared.splits.parts[part]
    chosen = choose_samples(data.labels, count)
    model = load(subject.file.path)
    with tempfile.TemporaryDirectory() as folder:
        deployed = _deployed(subject, data, model, chosen, seed, Path(folder))
        expected = _trained(subject, model, part, count, seed)
        classes, differing = subject.trained.classes, 0
        real = subject.contract.units is not None
        for number, answers, logits in zip(chosen, deployed, expected, strict=True):
            winner = str(logits[0].tolist()) if real else classes[int(mean_probabilities(logits).argmax())]
            equal = (np.array_equal(d.member_logits, logits) and (real or d.label == winner) for d in answers)
            wrong = [d for d, same in zip(answers, equal, strict=True) if not same]
            differing += bool(wrong)
            if wrong and differing == 1:
                worst = float(np.abs(wrong[0].member_logits - logits).max())
                found.fail(
                    f"sample {int(number)} of {part!r}: from its recording the file says {wrong[0].text!r}, the "
                    f"training path {winner!r}; the largest difference of their logits is {worst:.3g}"
                )
    binning, entering = prepared.binning, subject.contract.input.binning
    if binning is not None and entering is not None and (wrong_bins := check_borders(binning, entering, seed)):
        found.fail(wrong_bins)
    what = "recordings" if isinstance(data, Recordings) else "files of frames"
    if differing:
        found.fail(f"{differing} of {len(chosen)} {what} give other logits or another name than in training")
    else:
        found.lines.append(f"{len(chosen)} {what}, from the file to the decision: every logit and name as in training")


def _trained(subject: Subject, model: Model, part: str, count: int, seed: int) -> Iterator[Floats]:
    """Logits [members, classes] of each sample, on the input that training feeds."""
    members = {member.prefix: member.network for member in subject.collapsed.members}
    time, number = 1 if subject.contract.kind == "spiking" else 0, 0
    for x, labels in subject.trained.data(part, count):
        for place in range(len(labels)):
            one = x.narrow(time, place, 1).numpy()
            name = 0 if subject.contract.input.binning is not None else number
            noise = model.noise(seed, [name], 0, len(one) if time else 1)
            drawn = {key: value if time else value[0] for key, value in noise.items()}
            with torch.no_grad():
                yield of_torch("training path", members, one, drawn, gaps=False).logits[:, 0]
            number += 1


def _deployed(
    subject: Subject, data: Data, model: Model, chosen: NDArray[np.int64], seed: int, folder: Path
) -> Iterator[tuple[Decision, ...]]:
    """Return what the file says of each sample: at once, and of events that come in pieces."""
    if isinstance(data, Recordings):
        random = np.random.default_rng(seed)
        for index in chosen:
            place = _file_of(data, int(index), folder)
            yield _at_once(model, place, seed), _in_pieces(model, place, seed, random)
        return
    path = folder / "frames.npz"
    np.savez(path, frames=data.frames[chosen])
    for decision in FramePipeline(model.engine, read_frames(path, subject.contract.input), seed=seed).decisions():
        yield (decision,)


def _file_of(data: Recordings, index: int, folder: Path) -> Place:
    """Where the recording can be read: its own file, or one written for the purpose."""
    if data.places is not None:
        return data.places[index]
    path = folder / f"recording-{index}.npz"
    write_npz(path, data[index], data.sensor)
    return Place(path) if data.units is None else Place(path, start=0, stop=INT64_MAX)


def _at_once(model: Model, place: Place, seed: int) -> Decision:
    if place.start is None:
        return model.predict(place.path, seed=seed, index=place.number)
    session, events = _opened(model, place, seed)
    return [*session.push(events), *session.flush()][0]


def _in_pieces(model: Model, place: Place, seed: int, random: np.random.Generator) -> Decision:
    """Return the decision of the first window if the events are pushed in pieces of random length."""
    session, events = _opened(model, place, seed)
    decisions: list[Decision] = []
    start, largest = 0, 2 + min(LARGEST_PIECE, len(events) // 4)  # several pieces of every recording
    while start < len(events) and not decisions:
        size = int(random.integers(1, largest))
        decisions += session.push(events[start : start + size])
        start += size
    return (decisions + session.flush())[0]


def _opened(model: Model, place: Place, seed: int) -> tuple[Session, NDArray[np.void]]:
    """Return a session, which begins where the sample was cut, and the sample's events on the network's sensor."""
    entering, source = model.contract.input, FileSource(str(place.path), place.read())
    assert entering.binning is not None
    adapter = Fit().adapter(source, entering.binning.sensor, entering.fit)
    return model.session(seed=seed, every_bin=False, origin=place.start), adapter(source.recording.events)
