"""Run a network through the bins of a stream, window by window.

Window w holds the bins w·T … w·T + T − 1, with T from the contract. The network is at rest when a window begins, so its
last decision has the same bits as the whole window computed at once. A `continuous` network keeps its membranes and
resets only the total of its read-out. In both cases logits are those of the window so far: total / steps, the mean that
the network was trained on, or the last or the largest membrane. So float32 totals never exceed what one window adds up.
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
from axonnx.runtime.format.names import OF_WINDOW
from axonnx.runtime.format.network_input import to_input, window_length
from axonnx.runtime.program.layer_noise import Noise
from axonnx.runtime.streams.probabilities import is_sure, mean_probabilities
from axonnx.runtime.streams.tally import Tally

Floats = NDArray[np.float32]

# Bins and normal numbers that are in memory at a time; most silent bins that are computed for a continuous network
# that does not come to rest.
BLOCK = 256
NORMALS = 2**22
MOST_SILENT_BINS = 2**20


class Outcome(NamedTuple):
    """The network's output at the end of bin ``bin``, after ``steps`` steps of its window."""

    bin: int
    steps: int
    logits: Floats  # [members, classes]
    final: bool
    early: bool = False
    windows: int = 1  # number of windows it stands for: more than one after a silence


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
                "stop_at skips the rest of a window, but a continuous network must process every bin; give only one of "
                "them"
            )


class Windows:
    """The network's state between two bins, and the counts so far."""

    def __init__(self, engine: Engine, noise: Noise, rules: Rules) -> None:
        self.engine, self.noise, self.rules = engine, noise, rules
        self.contract = engine.program.contract
        self.length = window_length(self.contract, engine.program.name)
        self._scale = 1.0 if self.contract.certainty is None else self.contract.certainty.scale
        if rules.continuous and engine.program.clocked:
            raise AxonnxError(
                f"{engine.program.name}: cannot run continuously: its normalisation has separate parameters for each "
                f"of its "
                f"{self.length} time steps and none beyond. Run it window by window"
            )
        self.state = engine.initial_state(1)
        self.decided = False  # whether the open window has its final decision
        self._tally = Tally()
        self._spent: Activity | None = None  # not yet in the tally
        self._quiet: tuple[Outcome, Tally] | None = None
        normals = sum(engine.program.buffers[name].size for name in engine.program.noises)
        self._most = max(1, min(BLOCK, NORMALS // max(1, normals)))

    @property
    def tally(self) -> Tally:
        """The cost of all bins so far."""
        if self._spent is not None:
            self._tally.count(0, self._spent)
            self._spent = None
        return self._tally

    @tally.setter
    def tally(self, tally: Tally) -> None:
        self._tally, self._spent = tally, None

    def warm_up(self) -> None:
        """Run one silent bin and discard the result."""
        frames = np.zeros((1, 1, *self.contract.input.shape), np.uint8)
        self.engine.advance(self.engine.initial_state(1), to_input(frames, self.contract.input), self.noise(0, 0, 1))

    def pass_through(self, first: int, frames: NDArray[np.uint8]) -> Iterator[Outcome]:
        """Run consecutive bins of one window, frames [k, C, H, W] from bin ``first`` on."""
        return self._pass(first, frames, self.rules.every_bin)

    def silence(self, window: int, count: int) -> Outcome:
        """Run ``count`` whole silent windows and return the outcome of the last one."""
        if self.rules.continuous:
            outcome = self._silence_from_here(window, count)
        elif self.engine.program.noises:
            # A window has no effect on the next one, so only the last one matters.
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
            if each or steps == self.length:  # no other bin needs an outcome
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
        """Compute one silent window, once, and use it for all: each begins at rest and without noise they are equal."""
        if self._quiet is None:
            before, self.tally = self.tally, Tally()
            outcome = self._silent_window(window)
            self._quiet = outcome, self.tally
            self.tally = before
        outcome, cost = self._quiet
        self.tally += cost * count
        return outcome

    def _silence_from_here(self, window: int, count: int) -> Outcome:
        """Run silent windows until the state at the start of one equals an earlier one; then the states repeat.

        The search is Brent's: one earlier state is kept and replaced after 1, 2, 4, … windows.
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
            f"{self.engine.program.name}: the continuous network does not come to rest in a silence of "
            f"{count * self.length} bins; {MOST_SILENT_BINS} bins were computed. Run it window by window"
        )

    def _begin_window(self) -> None:
        self.decided = False
        if not self.rules.continuous:
            self.state = self.engine.initial_state(1)
            return
        arrays = self.state.arrays
        anew = {name: np.zeros_like(arrays[name]) for name in arrays if name.startswith(OF_WINDOW)}
        self.state = State(0, {**arrays, **anew}, self.engine.program)

    def _advance(self, window: int, step: int, x: Floats) -> Floats:
        """Run bins and return the read-outs after them, [members, classes]."""
        chunk = self.engine.advance(self.state, x, self.noise(window, step, len(x)))
        self.state = chunk.state
        self._count(len(x), chunk.activity)
        return chunk.logits[:, 0]

    def _count(self, bins: int, activity: Activity | None) -> None:
        """Add the cost of bins in the engine's own form; sorting it by name waits until the tally is read."""
        self._tally.computed += bins
        if activity is None:
            self._tally.uncounted += bins
        else:
            self._spent = activity if self._spent is None else self._spent.plus(activity)

    def _outcome(self, at: int, steps: int, readout: Floats) -> Outcome:
        stop_at = self.rules.stop_at
        logits = self.contract.logits_of(readout, steps)
        sure = stop_at is not None and bool(is_sure(mean_probabilities(logits, self._scale), stop_at))
        final = sure or steps == self.length
        self.decided = final
        return Outcome(at, steps, logits, final, early=sure and steps < self.length)


def same_bits(a: State, b: State) -> bool:
    """Return whether two states of a network have equal bits, including the signs of zeros."""
    pairs = ((a.arrays[name].view(np.uint32), b.arrays[name].view(np.uint32)) for name in b.arrays)
    return all(np.array_equal(mine, theirs) for mine, theirs in pairs)
