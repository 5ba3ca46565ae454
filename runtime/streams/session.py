"""A network that follows a stream: events in, decisions out.

    session = load("model.onnx").session(seed=0)
    for events in chunks:
        for decision in session.push(events): …
    session.flush()

The decisions do not depend on how the stream is cut into chunks, bit for bit. A bin is decided as soon as an event of a
later bin shows that it is over. Only events on the sensor start and advance the time. Events off the sensor, or of an
unknown polarity, are counted and otherwise ignored. Consecutive silent windows give one decision, that of the last
window; ``windows`` states their number. A silent bin in a window with events gives a decision like any other bin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, wraps
from threading import RLock
from typing import Concatenate, Literal, ParamSpec, TypeVar

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.completed import CompletedBins
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.binning.stream import LAST_BIN, Binner
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.engines.state import State, check_state
from axonnx.runtime.events.arrays import Events
from axonnx.runtime.program.layer_noise import stream_noise
from axonnx.runtime.streams.decision import Decision
from axonnx.runtime.streams.session_check import check_session
from axonnx.runtime.streams.session_state import Progress, SessionState, fingerprint
from axonnx.runtime.streams.tally import Tally
from axonnx.runtime.streams.windows import Outcome, Rules, Windows

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _one_at_a_time(
    method: Callable[Concatenate[Session, Arguments], Result],
) -> Callable[Concatenate[Session, Arguments], Result]:
    """Make threads that share a session wait for each other, so that no event is lost between two calls."""

    @wraps(method)
    def alone(self: Session, /, *words: Arguments.args, **options: Arguments.kwargs) -> Result:
        with self._alone:
            return method(self, *words, **options)

    return alone


class Session:
    """One stream through one network. Threads may share it: their calls run one after the other.

    Args:
        engine: Engine that runs the network.
        seed: Seed of the noise of a stochastic network. The noise depends only on (seed, window, step, layer).
        continuous: Carry the membranes over from one window to the next.
        stop_at: Close a window as soon as the highest probability reaches this value.
        every_bin: Give a decision for each bin. Without it only final decisions are given: the same bits, but several
            bins are computed at a time.
        origin: Start of bin 0 on the stream's clock: a time in microseconds, or ``"first"`` for the first event.
            Default: from the contract.
        one_window: Treat the stream as one sample. Only its first window exists; it gets a decision even if no event
            came. Events after it are counted as ``after``.

    Raises:
        AxonnxError: If the network takes no events, or the options contradict each other.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        seed: int = 0,
        continuous: bool = False,
        stop_at: float | None = None,
        every_bin: bool = True,
        origin: int | Literal["first"] | None = None,
        one_window: bool = False,
    ) -> None:
        rules = Rules(continuous, stop_at, every_bin)
        if stop_at is not None:
            engine.program.contract.needs_classes(engine.program.name, "stop_at")
        self.engine, self.seed = engine, seed
        self._windows = Windows(engine, stream_noise(engine.program, seed), rules)
        binning = engine.program.contract.input.binning
        assert binning is not None  # Windows has refused such files
        self.one_window, self.epoch = one_window, 0
        self._binning, self._origin = binning, origin
        self._binner = self._new_binner()
        self._go_on_from(Progress())
        self._alone = RLock()

    @property
    def progress(self) -> Progress:
        """The counters of events and bins so far."""
        return replace(self._own_progress(), outside=self._outside + self._binner.outside, clipped=self._binner.clipped)

    @property
    def reached_us(self) -> int | None:
        """Start of the open bin on the stream's clock; None before the first event."""
        return self._binner.reached_us

    def warm_up(self) -> None:
        """Run one silent bin, so that the first events do not wait for memory and code to be ready."""
        self._windows.warm_up()

    def push(self, events: Events) -> list[Decision]:
        """Push events and return the decisions of the bins that they complete.

        Args:
            events: Events in order of time, none earlier than those pushed before.

        Raises:
            AxonnxError: If the events are not valid, or the decisions of ``stream`` were not all consumed.
        """
        with self._alone:
            completed = self._completed(events)
            return list(self._decide(completed)) if completed else []

    @_one_at_a_time
    def stream(self, events: Events) -> Iterator[Decision]:
        """Push events and return an iterator over the decisions, in constant memory. Consume it to the end."""
        return self._decide(self._completed(events))

    @_one_at_a_time
    def advance(self, t_us: int) -> list[Decision]:
        """Return the decisions of the bins that end at or before ``t_us``; no more events of these bins may follow."""
        self._check_finished()
        return list(self._decide(self._binner.advance(t_us)))

    @_one_at_a_time
    def flush(self) -> list[Decision]:
        """End the stream: fill the open window with silence and return its decisions, or none if no event came."""
        self._check_finished()
        done = self._binner.flush()
        decisions = list(self._decide(done))
        length = self._windows.length
        to_come = length - done.stop if self.one_window else min(-done.stop % length, LAST_BIN + 1 - done.stop)
        return decisions + list(self._decide(self._binner.flush(done.stop + to_come), done.stop % length))

    @_one_at_a_time
    def restart(self) -> None:
        """Begin a new epoch at rest, because the source's clock began again; counters go on. Flush first."""
        self._check_finished()
        progress = self.progress
        self._binner = self._new_binner()
        self._binner.restore(replace(self._binner.save(), clipped=progress.clipped))
        self._windows.state, self._windows.decided = self.engine.initial_state(1), False
        self._go_on_from(progress)
        self.epoch += 1

    @_one_at_a_time
    def save(self) -> SessionState:
        """Return the session's state as a value that later calls do not change."""
        self._check_finished()
        state, windows = self._windows.state, self._windows
        arrays = {name: array.copy() for name, array in state.arrays.items()}
        return SessionState(
            self._identity,
            self._binner.save(),
            state.step,
            arrays,
            windows.decided,
            self._own_progress(),
            epoch=self.epoch,
        )

    @_one_at_a_time
    def restore(self, state: SessionState) -> None:
        """Continue from a saved state.

        Raises:
            AxonnxError: If the state belongs to another network, seed or option, or is damaged.
        """
        if state.identity != self._identity:
            keys = {**self._identity, **state.identity}
            differing = [key for key in keys if state.identity.get(key) != self._identity.get(key)]
            raise AxonnxError(
                f"{self.engine.program.name}: the saved session differs in {', '.join(differing)}; restore it into a "
                f"session of the same file with the same seed and options"
            )
        length, stop_at = self._windows.length, self._windows.rules.stop_at
        check_session(state, length, self._binner.binning.cells, stop_at is not None, self.engine.program.name)
        network = check_state(self.engine.program, State(state.step, dict(state.arrays)))
        self._binner.restore(state.binner)
        self._windows.state, self._windows.decided = network, state.decided
        self._windows.tally = state.progress.tally + Tally()
        self.epoch = state.epoch
        self._go_on_from(state.progress)

    def _go_on_from(self, progress: Progress) -> None:
        self._outside: Outside = progress.outside
        self._events, self._counted, self._bins = progress.events, progress.counted, progress.bins
        self._decided, self._unfinished = progress.decisions, False

    def _own_progress(self) -> Progress:
        """Return the counters without those of the binner."""
        return Progress(
            events=self._events,
            outside=self._outside,
            counted=self._counted,
            bins=self._bins,
            decisions=self._decided,
            tally=self._windows.tally + Tally(),
        )

    @cached_property
    def _identity(self) -> dict[str, object]:
        rules = self._windows.rules
        return {
            "network": fingerprint(self.engine.program),
            "seed": self.seed,
            "continuous": rules.continuous,
            "stop_at": rules.stop_at,
            **({"one_window": True} if self.one_window else {}),
        }

    def _new_binner(self) -> Binner:
        binner = Binner(self._binning, last=self._windows.length if self.one_window else None)
        if self._origin is None:
            return binner
        origin = None if self._origin == "first" else self._origin
        if origin is not None and not -(2**63) <= origin < 2**63:
            raise AxonnxError(f"session: origin is {origin}; expected a 64-bit number of microseconds")
        binner.restore(replace(binner.save(), origin=origin))
        return binner

    def _completed(self, events: Events) -> CompletedBins:
        self._check_finished()
        completed = self._binner.push(events)
        self._events += len(events)
        return completed

    def _decide(self, completed: CompletedBins, ended_after: int | None = None) -> Iterator[Decision]:
        self._bins += completed.count
        self._counted += completed.counted
        self._unfinished = completed.count > 0
        return self._decisions(completed, ended_after)

    def _decisions(self, completed: CompletedBins, ended_after: int | None) -> Iterator[Decision]:
        windows, at = self._windows, completed.first
        while at < completed.stop:
            window, step = divmod(at, windows.length)
            silent = (completed.next_busy(at) - at) // windows.length if step == 0 else 0
            count = silent * windows.length or min(windows.length - step, completed.stop - at, completed.block_bins)
            for outcome in (
                [windows.silence(window, silent)] if silent else windows.pass_through(at, completed.frames(at, count))
            ):
                self._decided += 1
                yield self._decision(outcome, ended_after, completed)
            at += count
        self._unfinished = False

    def _decision(self, outcome: Outcome, ended_after: int | None, completed: CompletedBins) -> Decision:
        return Decision.made_of(
            t_us=self._binner.end_us(completed, outcome.bin),
            bin=outcome.bin,
            window=outcome.bin // self._windows.length,
            steps=outcome.steps,
            member_logits=outcome.logits,
            classes=self.engine.program.contract.classes,
            units=self.engine.program.contract.units,
            final=outcome.final,
            early=outcome.early,
            windows=outcome.windows,
            ended_after=ended_after,
            **({"epoch": self.epoch} if self.epoch else {}),
            **Decision.certainty_of(self.engine.program.contract, outcome.steps),
        )

    def _check_finished(self) -> None:
        if self._unfinished:
            raise AxonnxError("session: consume all decisions of the previous chunk before pushing more events")
