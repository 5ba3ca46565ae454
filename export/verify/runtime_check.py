"""What the runtime adds to a network, done again plainly: noise, windows, saved sessions, early exit, probabilities.

A stream of several windows is made of recordings. A session hears it in pieces; between them it is saved and continued
by another session, and its time is advanced up to the end of open bins. Every decision is held against the collapsed
network in torch, which goes through each window from rest, bin by bin, on bins that are counted one event at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from axonnx.export.graph.capture import Member
from axonnx.export.verify.plain_certainty import plain_distances
from axonnx.export.verify.plain_events import QUANTILES, entering_plainly, plain_normal, plainly
from axonnx.export.verify.structure import Findings, Subject
from axonnx.models import MEAN_FIELD, Fire, Replay, SpikingNetwork
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import Events
from axonnx.runtime.format.names import NOISE
from axonnx.runtime.measure.samples import choose_samples
from axonnx.runtime.model import Model, load
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.session import Session
from axonnx.train.build import Prepared
from axonnx.train.data.recordings import Recordings

Floats = NDArray[np.float32]
WINDOWS = 3
MOST_EVENTS = 4000  # of a window; a plain count takes a microsecond for each
DRAWN = 8  # seeds, samples, steps and neurons at which noise is drawn again
DOUBLES = 1e-9  # by which exponentials and logarithms differ that were rounded otherwise


class Said(NamedTuple):
    """What must be said at the end of a bin."""

    bin: int
    logits: Floats  # [members, classes]
    final: bool
    early: bool


def check_runtime(subject: Subject, prepared: Prepared, part: str, seed: int, found: Findings) -> None:
    """Noise, windows, sessions, early exit and probabilities of the file."""
    model = load(subject.file.path)
    if model.program.noises:
        for line in wrong_noise(subject, model, seed):
            found.fail(line)
        if found.ok:
            found.lines.append(f"noise of {len(model.program.noises)} layers: as drawn by a generator of its own")
    data = prepared.splits.parts[part]
    if not isinstance(data, Recordings) or subject.contract.input.binning is None:
        return
    stream = Stream(subject, model, _windows(data, subject.contract.input.binning), seed)
    for line in stream.faults():
        found.fail(line)
    if found.ok:
        found.lines.append(
            f"a stream of {WINDOWS} windows in pieces, saved and continued between them, and cut short by early exit: "
            f"{stream.compared:,} decisions, their probabilities and entropies"
        )


def wrong_noise(subject: Subject, model: Model, seed: int) -> Iterator[str]:
    """Return the first number of each noisy layer that another generator draws otherwise."""
    samples, first = [0, 1, 2**32 - 1], 5
    for layer in (entry for entry in subject.contract.layers if entry.noise):
        name, count = str(layer.noise), math.prod(layer.shape)
        numbers = sorted({int(n) for n in np.linspace(0, count - 1, DRAWN)})
        for drawn_from in (seed, seed + 1, 2**64 - 1):
            drawn = model.noise(drawn_from, samples, first, DRAWN)[name].reshape(DRAWN, len(samples), -1)
            places = ((step, at, n) for step in range(DRAWN) for at in range(len(samples)) for n in numbers)
            for step, at, n in places:
                own = plain_normal(drawn_from, samples[at], first + step, name, n)
                if not abs(float(drawn[step, at, n]) - own) <= QUANTILES:
                    yield (
                        f"noise of layer {layer.name!r}, seed {drawn_from}, sample {samples[at]}, time step "
                        f"{first + step}, neuron {n} is {float(drawn[step, at, n]):.7g}; expected {own:.7g}"
                    )
                    break


def _windows(data: Recordings, binning: Binning) -> list[Events]:
    """Return the events of some recordings, each in a window of its own with events in the first and the last bin."""
    length, found = binning.bins * binning.bin_us, list[Events]()
    for index in choose_samples(data.labels, WINDOWS):
        events = data[int(index)].copy()
        events["t"] -= events["t"][0] if len(events) else 0
        inside = events[events["t"] < length][: max(MOST_EVENTS, 2 * min(binning.most_events or 0, 5 * MOST_EVENTS))]
        if not len(inside):
            continue
        inside["t"][-1] = length - 1
        inside["t"] += len(found) * length
        found.append(inside)
    return found


@dataclass
class Stream:
    """A stream whose every window has events, and what must be said of it."""

    subject: Subject
    model: Model
    windows: Sequence[Events]
    seed: int
    compared: int = 0

    def faults(self) -> Iterator[str]:
        """Return the first decision of each kind of session that is not what must be said."""
        if not self.windows:
            return
        expected = list(self._expected())
        yield from self._compare("a stream in pieces", self._in_pieces(None), expected)
        stop_at, ended = self._early(expected)
        yield from self._compare(f"a stream with early exit at {stop_at:.6f}", self._in_pieces(stop_at), ended)

    @property
    def _scale(self) -> float:
        certainty = self.subject.contract.certainty
        return 1.0 if certainty is None else certainty.scale

    @property
    def _binning(self) -> Binning:
        binning = self.subject.contract.input.binning
        assert binning is not None
        return binning

    @torch.no_grad()
    def _expected(self) -> Iterator[Said]:
        """Return the collapsed network through every window from rest."""
        length, binning = self._binning.bins, self._binning.model_copy(update={"origin": "zero"})
        frames = plainly(np.concatenate(list(self.windows)), binning, whole=True)
        for window, seen in enumerate(np.split(frames, len(frames) // length)):
            x = torch.from_numpy(entering_plainly(seen, self.subject.contract.input))
            noise = self.model.noise(self.seed, [window], 0, length)
            members = [running_logits(member, x, noise)[:, 0] for member in self.subject.collapsed.members]
            for step in range(length):
                logits = np.stack([each[step] for each in members])
                yield Said(window * length + step, logits, step + 1 == length, early=False)

    def _early(self, expected: Sequence[Said]) -> tuple[float, list[Said]]:
        """Return a probability that ends some windows early, and what must be said with it."""
        length = self._binning.bins
        surest = [max(plain_probabilities(said.logits, self._scale)) for said in expected]
        middle = np.sort(surest)[len(surest) // 3 : 2 * len(surest) // 3 + 2]
        widest = int(np.diff(middle).argmax())  # so that no rounding of a probability decides
        stop_at = float(middle[widest : widest + 2].mean())
        found, open_window = [], True
        for said, probability in zip(expected, surest, strict=True):
            open_window = open_window or said.bin % length == 0
            if open_window:
                sure = probability >= stop_at
                found.append(said._replace(final=sure or said.final, early=sure and not said.final))
                open_window = not sure
        return stop_at, found

    def _in_pieces(self, stop_at: float | None) -> list[Decision]:
        """Return what a session says if it is saved after each piece and its time is advanced within open bins."""
        events = np.concatenate(list(self.windows))
        random, bin_us = np.random.default_rng(self.seed), self._binning.bin_us
        cuts = np.sort(random.integers(0, len(events), 3 * len(self.windows)))
        session, found = self._session(stop_at), []
        for start, stop in pairwise([0, *cuts.tolist(), len(events)]):
            found += session.push(events[start:stop])
            if stop < len(events):
                reached = int(events["t"][stop])
                if self._binning.most_events is None:
                    reached = reached // bin_us * bin_us  # the open bin goes on
                found += session.advance(reached)
                state = session.save()
                session = self._session(stop_at)
                session.restore(state)
        return found + session.flush()

    def _session(self, stop_at: float | None) -> Session:
        return self.model.session(seed=self.seed, stop_at=stop_at, origin=0)

    def _compare(self, what: str, found: Sequence[Decision], expected: Sequence[Said]) -> Iterator[str]:
        for decision, said in zip(found, expected, strict=False):
            if (wrong := self._wrong(decision, said)) is not None:
                yield f"{what}: bin {said.bin} (window {said.bin // self._binning.bins}): {wrong}"
                return
            self.compared += 1
        if len(found) != len(expected):
            yield f"{what}: {len(found)} decisions; expected {len(expected)}"

    def _wrong(self, decision: Decision, said: Said) -> str | None:
        """Return what is wrong with a decision."""
        stated = decision.bin, decision.final, decision.early
        if stated != (expected := (said.bin, said.final, said.early)):
            return f"the decision has (bin, final, early) = {stated}; expected {expected}"
        if not np.array_equal(decision.member_logits, said.logits):
            worst = float(np.abs(decision.member_logits - said.logits).max())
            return f"its logits differ from the collapsed network's by up to {worst:.3g}"
        p = plain_probabilities(said.logits, self._scale)
        if not np.allclose(decision.probabilities, p, rtol=DOUBLES, atol=DOUBLES):
            return f"its probabilities are {decision.probabilities.tolist()}; its logits give {p}"
        if decision.label != (label := self.subject.contract.classes[p.index(max(p))]) and p.count(max(p)) == 1:
            return f"it says {decision.label!r}; its logits give {label!r}"
        entropies = {"entropy": plain_entropy(p)}
        if len(said.logits) > 1:
            each = [plain_entropy(plain_probabilities(row[None])) for row in said.logits]
            whole = plain_entropy(plain_probabilities(said.logits))
            entropies["mutual_information"] = whole - math.fsum(each) / len(each)
        for name, value in entropies.items():
            if not abs(getattr(decision, name) - value) <= DOUBLES:
                return f"its {name} is {getattr(decision, name):.9g}; its logits give {value:.9g}"
        if (certainty := self.subject.contract.certainty) is not None:
            behind = plain_distances(said.logits.tolist())
            margin = certainty.margins[said.bin % self._binning.bins]
            names = zip(self.subject.contract.classes, behind, strict=True)
            possible = tuple(name for name, far in names if far <= margin or name == decision.label)
            if decision.possible != possible or (decision.answer is None) != (len(possible) > 1):
                return f"it says that {decision.possible} are possible; its logits and margin give {possible}"
        return None


@torch.no_grad()
def running_logits(member: Member, x: torch.Tensor, noise: Mapping[str, Floats]) -> Floats:
    """Return the running means of one member's logits [T, B, classes], of the collapsed network in torch."""
    prefix, network = member.prefix, member.network
    drawn = {name.removeprefix(NOISE + prefix): torch.from_numpy(value) for name, value in noise.items()}
    fire: Fire = Replay(drawn) if drawn else MEAN_FIELD
    if not isinstance(network, SpikingNetwork):
        only: Floats = network(x, fire).logits[None].numpy()
        return only
    state, found = None, []
    for frame in x:
        output = network.step(frame, state, fire)
        state = output.state
        found.append(output.logits.numpy())
    return np.stack(found)


def plain_probabilities(member_logits: Floats, scale: float = 1.0) -> list[float]:
    """Return the mean over members of e^z / Σ e^z; to the power of ``scale``, normalised."""
    mean = _plain_mean(member_logits)
    powers = [math.exp(scale * math.log(p)) if p > 0 else 0.0 for p in mean]
    return [power / math.fsum(powers) for power in powers]


def _plain_mean(member_logits: Floats) -> list[float]:
    rows = []
    for logits in member_logits.tolist():
        powers = [math.exp(z - max(logits)) for z in logits]
        rows.append([power / math.fsum(powers) for power in powers])
    return [math.fsum(column) / len(rows) for column in zip(*rows, strict=True)]


def plain_entropy(probabilities: Sequence[float]) -> float:
    """Return −Σ p ln p."""
    return -math.fsum(p * math.log(p) for p in probabilities if p > 0)
