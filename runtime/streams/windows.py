"""A network carried through the bins of a stream, window by window.

Window w is the bins w·T … w·T + T − 1, for the T of the contract. The network is at rest when a window begins, so its
last decision has the bits of the whole window run at once; a `continuous` network keeps its membranes, and only the
read-out's total begins anew. In both cases logits are total / steps over the steps of the window so far, the mean that
the network was trained on, and float32 totals never grow beyond what a window can add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.interface import Activity, Engine
from axonnx.runtime.engines.state import State
from axonnx.runtime.format.network_input import to_input, window_length
from axonnx.runtime.program.layer_noise import Noise
from axonnx.runtime.streams.probabilities import is_sure, mean_probabilities
from axonnx.runtime.streams.tally import Tally

Floats = NDArray[np.float32]

# Bins and normals that are in memory at a time, and silent bins that a network which never comes to rest is carried
# through.
BLOCK = 256
NORMALS = 2**22
MOST_SILENT_BINS = 2**20


class Outcome(NamedTuple):
    """What the network says at the end of bin ``bin``, after ``steps`` steps of its window."""

    bin: int
    steps: int
    logits: Floats  # [members, classes]
    final: bool
    early: bool = False
    windows: int = 1  # how many it speaks for: more than one after a silence


@dataclass(frozen=True)
class Rules:
    """When a network speaks, and whether it is reset between windows."""

    continuous: bool = False
    stop_at: float | None = None
    every_bin: bool = True

    def __post_init__(self) -> None:
        if self.stop_at is not None and not 0 < self.stop_at <= 1:
            raise AxonnxError(f"stop_at is {self.stop_at}; expected a probability above 0 and up to 1")
        if self.stop_at is not None and self.continuous:
            raise AxonnxError(
                "stop_at skips the rest of a window, and a continuous network must see every bin: give one of them"
            )


class Windows:
    """The network's state between two bins, and the counts so far."""

    def __init__(self, engine: Engine, noise: Noise, rules: Rules) -> None:
        self.engine, self.noise, self.rules = engine, noise, rules
        self.contract = engine.program.contract
        self.length = window_length(self.contract, engine.program.name)
        if rules.continuous and engine.program.steps_known is not None:
            raise AxonnxError(
                f"{engine.program.name}: its normalisation has numbers of its own for each of {self.length} time steps "
                f"and none beyond: it cannot run continuously, only window by window"
            )
        self.state = engine.initial_state(1)
        self.decided = False  # the open window has its final decision
        self._tally = Tally()
        self._spent: Activity | None = None  # not yet in the tally
        self._quiet: tuple[Outcome, Tally] | None = None
        normals = sum(engine.program.buffers[name].size for name in engine.program.noises)
        self._most = max(1, min(BLOCK, NORMALS // max(1, normals)))

    @property
    def tally(self) -> Tally:
        """What all bins so far have cost."""
        if self._spent is not None:
            self._tally.count(0, self._spent)
            self._spent = None
        return self._tally

    @tally.setter
    def tally(self, tally: Tally) -> None:
        self._tally, self._spent = tally, None

    def warm_up(self) -> None:
        """One silent bin, of which nothing is kept."""
        frames = np.zeros((1, 1, *self.contract.input.shape), np.uint8)
        self.engine.advance(self.engine.initial_state(1), to_input(frames, self.contract.input), self.noise(0, 0, 1))

    def pass_through(self, first: int, frames: NDArray[np.uint8]) -> Iterator[Outcome]:
        """Go through consecutive bins of one window, from bin ``first`` on; frames [k, C, H, W]."""
        return self._pass(first, frames, self.rules.every_bin)

    def silence(self, window: int, count: int) -> Outcome:
        """Go through ``count`` whole silent windows; what the network says in the last of them."""
        if self.rules.continuous:
            outcome = self._silence_from_here(window, count)
        elif self.engine.program.noises:
            # Nothing of a window reaches the next one: only the last is of any consequence.
            self.tally.skipped += (count - 1) * self.length
            outcome = self._silent_window(window + count - 1)
        else:
            outcome = self._silence_from_rest(window, count)
        self._begin_window()
        return outcome._replace(bin=(window + count - 1) * self.length + outcome.steps - 1, windows=count)

    def _pass(self, first: int, frames: NDArray[np.uint8], every_bin: bool) -> Iterator[Outcome]:
        window, step = divmod(first, self.length)
        if step == 0:
            self._begin_window()
        each = every_bin or self.rules.stop_at is not None
        size = 1 if each else self._most
        x = to_input(frames[:, np.newaxis], self.contract.input)
        for at in range(0, len(x), size):
            if self.decided:
                self.tally.skipped += len(x) - at
                return
            part = x[at : at + size]
            readout, steps = self._advance(window, step + at, part), step + at + len(part)
            if each or steps == self.length:  # of all other bins nobody asks for an outcome
                outcome = self._outcome(first + at + len(part) - 1, steps, readout)
                if outcome.final or every_bin:
                    yield outcome

    def _silent_window(self, window: int) -> Outcome:
        found: list[Outcome] = []
        for step in range(0, self.length, BLOCK):
            frames = np.zeros((min(BLOCK, self.length - step), *self.contract.input.shape), np.uint8)
            found += self._pass(window * self.length + step, frames, every_bin=False)
        (final,) = found
        return final

    def _silence_from_rest(self, window: int, count: int) -> Outcome:
        """Every window begins at rest and no noise tells them apart: one is computed, ever, and stands for all."""
        if self._quiet is None:
            before, self.tally = self.tally, Tally()
            outcome = self._silent_window(window)
            self._quiet = outcome, self.tally
            self.tally = before
        outcome, cost = self._quiet
        self.tally += cost * count
        return outcome

    def _silence_from_here(self, window: int, count: int) -> Outcome:
        """Window after window, until the state at the start of one is that of an earlier one: then it goes in circles.

        The search is Brent's: one earlier state is kept, replaced after 1, 2, 4, … windows.
        """
        anchor, reach, since, cost = None, 1, 0, Tally()
        outcome, done, computed = None, 0, 0
        while done < count:
            self._begin_window()
            if anchor is not None and since and same_bits(self.state, anchor):
                rounds = (count - done) // since
                self.tally += cost * rounds
                done, anchor, reach = done + rounds * since, None, 0
                continue
            if since == reach and not self.engine.program.noises:
                anchor, reach, since, cost = self.state, 2 * reach, 0, Tally()
            before, self.tally = self.tally, Tally()
            outcome = self._silent_window(window + done)
            cost += self.tally
            self.tally += before
            done, since, computed = done + 1, since + 1, computed + self.length
            if computed > MOST_SILENT_BINS:
                raise self._too_long(count)
        assert outcome is not None
        return outcome

    def _too_long(self, count: int) -> AxonnxError:
        return AxonnxError(
            f"{self.engine.program.name}: a silence of {count * self.length} bins, in which the continuous network "
            f"does not come to rest: {MOST_SILENT_BINS} of them were computed. Run it window by window"
        )

    def _begin_window(self) -> None:
        self.decided = False
        if not self.rules.continuous:
            self.state = self.engine.initial_state(1)
            return
        totals = {name: np.zeros_like(self.state.arrays[name]) for name in self.engine.program.totals}
        self.state = State(0, {**self.state.arrays, **totals}, self.engine.program)

    def _advance(self, window: int, step: int, x: Floats) -> Floats:
        """Go through bins; what the read-outs hold after them [members, classes]."""
        chunk = self.engine.advance(self.state, x, self.noise(window, step, len(x)))
        self.state = chunk.state
        self._count(len(x), chunk.activity)
        return chunk.logits[:, 0]

    def _count(self, bins: int, activity: Activity | None) -> None:
        """What bins have cost is added up as the engine has it: it is sorted by name only when someone asks."""
        self._tally.computed += bins
        if activity is None:
            self._tally.uncounted += bins
        else:
            self._spent = activity if self._spent is None else self._spent.plus(activity)

    def _outcome(self, at: int, steps: int, readout: Floats) -> Outcome:
        stop_at = self.rules.stop_at
        logits = readout.copy() if self.contract.logits == "direct" else readout / np.float32(steps)
        sure = stop_at is not None and bool(is_sure(mean_probabilities(logits), stop_at))
        final = sure or steps == self.length
        self.decided = final
        return Outcome(at, steps, logits, final, early=sure and steps < self.length)


def same_bits(a: State, b: State) -> bool:
    """Whether two states of a network are the same to the last bit, zeros' signs included."""
    pairs = ((a.arrays[name].view(np.uint32), b.arrays[name].view(np.uint32)) for name in b.arrays)
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)
