"""Load an exported file, and run it on whole inputs or step by step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.choose import ENGINES, EngineName, make_engine
from axonnx.runtime.engines.interface import Chunk, Engine, Stepper, make_stepper
from axonnx.runtime.engines.state import State, check_state
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.program.compilation import Compilation
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.program.layer_noise import draw_noise
from axonnx.runtime.program.step_graph import step_graph
from axonnx.runtime.result import Floats, RunResult

if TYPE_CHECKING:
    from axonnx.runtime.events.arrays import Events
    from axonnx.runtime.readers import Recording
    from axonnx.runtime.streams.adapt import Fit
    from axonnx.runtime.streams.decision import Decision
    from axonnx.runtime.streams.session import Session
    from axonnx.runtime.streams.sources import FileSource

NOISE_AT_ONCE = 2**22  # normals that are kept in memory at a time


class Model:
    """A loaded file with an engine. Running it does not change it.

    Load one with ``axonnx.load("gesture.onnx")``.

    Attributes:
        program: The file's network, compiled to instructions.
        engine: The inference engine.
        contract: What the network takes and returns.
    """

    def __init__(self, program: Program, engine: Engine) -> None:
        self.program, self.engine = program, engine
        self.contract: Contract = program.contract
        self._spiking = self.contract.kind == "spiking"

    def prepare(self, values: NDArray[Any]) -> Floats:
        """Convert counts or pixels [T, B, …] (images: [B, …]) to the network's input (value − centre) · 2^−shift."""
        return (
            to_input(values, self.contract.input) if self._spiking else to_input(values[None], self.contract.input)[0]
        )

    def initial_state(self, batch: int = 1) -> State:
        """Return the state before the first step."""
        return self.engine.initial_state(batch)

    def noise(self, seed: int, samples: Sequence[int], first_step: int, steps: int) -> dict[str, Floats]:
        """Draw the noise [T, B, …] of every noisy layer; it depends only on seed, sample, step and layer."""
        return draw_noise(self.program, seed, samples, first_step, steps)

    def run(
        self,
        x: NDArray[Any],
        *,
        seed: int = 0,
        samples: Sequence[int] | None = None,
        state: State | None = None,
        trace: bool = False,
    ) -> RunResult:
        """Run sequences [T, B, …], or images [B, …] with a binary network.

        Args:
            x: Input of the network, as ``prepare`` returns it.
            seed: Seed of the noise of a stochastic network.
            samples: Number of each sample, which selects its noise. Default: 0, 1, …
            state: State in which an earlier run ended. Default: the initial state.
            trace: Record the spikes and membranes of every layer.

        Returns:
            Logits, probabilities, uncertainty and the state after the last step.

        Raises:
            AxonnxError: If the input has another type or shape than the contract states.

        Examples:
            >>> model = axonnx.load("digits.onnx")
            >>> model.run(np.zeros((30, 2, 2, 16, 16), np.float32)).logits.shape  # 30 steps, 2 samples
            (2, 10)
        """
        given = self._input(x if self._spiking else np.asarray(x)[None])
        batch = given.shape[1]
        begin = self.initial_state(batch) if state is None else check_state(self.program, state)
        names = range(batch) if samples is None else samples
        self._check_run(begin, given, names)
        if not self.program.noises:
            return self._result([self.engine.advance(begin, given, {}, trace)])
        return self._result(self._noisy(begin, given, seed, names, trace))

    def step(
        self, state: State, x: NDArray[Any], *, seed: int = 0, samples: Sequence[int] | None = None, trace: bool = False
    ) -> tuple[State, RunResult]:
        """Run one time step of x [B, …].

        Args:
            state: State before the step.
            x: Input of the network, as ``prepare`` returns it.
            seed: Seed of the noise of a stochastic network.
            samples: Number of each sample, which selects its noise. Default: 0, 1, …
            trace: Record the spikes and membranes of every layer.

        Returns:
            The state after the step, and the result of all steps so far.

        Raises:
            AxonnxError: If the network is binary, or the input does not fit.
        """
        if not self._spiking:
            raise AxonnxError(f"{self.program.name}: is a binary network without time steps; use run on images")
        given = x[None] if type(x) is np.ndarray and x.dtype == np.float32 else self._input(np.asarray(x)[None])
        if given.shape[2:] != self.contract.input.shape or given.shape[1] != state.batch or samples is not None:
            self._check_run(state, self._input(given), samples or range(state.batch))
        noise = self.noise(seed, samples or range(state.batch), state.step, 1) if self.program.noises else {}
        chunk = self.engine.advance(state, given, noise, trace)
        return chunk.state, RunResult(chunk, self.contract)

    def stepper(self, state: State | None = None, *, seed: int = 0, samples: Sequence[int] | None = None) -> Stepper:
        """Return an object that runs step by step and keeps the state, in a fraction of the time of ``step``.

        Args:
            state: State to begin with. Default: the initial state of one sample.
            seed: Seed of the noise of a stochastic network.
            samples: Number of each sample, which selects its noise. Default: 0, 1, …

        Examples:
            >>> stepper = axonnx.load("digits.onnx").stepper()
            >>> for _ in range(30):
            ...     logits = stepper.step(np.zeros((1, 2, 16, 16), np.float32))
            >>> logits.shape, stepper.state.step
            ((1, 1, 10), 30)
        """
        begin = self.initial_state(1) if state is None else check_state(self.program, state)
        return make_stepper(self.engine, begin, seed, range(begin.batch) if samples is None else samples)

    def session(
        self,
        *,
        seed: int = 0,
        continuous: bool = False,
        stop_at: float | None = None,
        every_bin: bool = True,
        origin: int | Literal["first"] | None = None,
        one_window: bool = False,
    ) -> Session:
        """Start a session: push events of a stream, get decisions.

        Args:
            seed: Seed of the noise of a stochastic network.
            continuous: Carry the membranes over from one window to the next.
            stop_at: Close a window as soon as the highest probability reaches this value.
            every_bin: Give a decision for each bin, not only the final ones.
            origin: Start of bin 0: a time in microseconds, or ``"first"`` for the first event. Default: from the
                contract.
            one_window: Treat the stream as one sample, and decide on its first window only.

        Raises:
            AxonnxError: If the network takes no events, or the options contradict each other.

        Examples:
            >>> session = axonnx.load("digits.onnx").session(every_bin=False)
            >>> events = axonnx.read_events("recording.npz").events
            >>> decisions = session.push(events[:700]) + session.push(events[700:]) + session.flush()
            >>> [decision.window for decision in decisions if decision.final]
            [0]
        """
        from axonnx.runtime.streams.session import Session

        return Session(
            self.engine,
            seed=seed,
            continuous=continuous,
            stop_at=stop_at,
            every_bin=every_bin,
            origin=origin,
            one_window=one_window,
        )

    def predict(
        self,
        recording: Events | Recording | str | os.PathLike[str],
        *,
        seed: int = 0,
        index: int | None = None,
        fit: Fit | None = None,
    ) -> Decision:
        """Classify a recording that is one sample, as in training.

        The decision is that of the first window from the contract's origin on. Events outside it are counted in
        ``decision.outside``.

        Args:
            recording: Events, a ``Recording``, or the path of a file.
            seed: Seed of the noise of a stochastic network.
            index: Which recording of a file with several.
            fit: How to map the events to the network's sensor.

        Returns:
            One final decision.

        Raises:
            AxonnxError: If the file cannot be read, or its sensor does not fit.

        Examples:
            >>> decision = axonnx.load("digits.onnx").predict("recording.npz")
            >>> decision.label in decision.classes, decision.outside.total
            (True, 0)
        """
        from axonnx.runtime.streams.adapt import Fit

        session = self.session(seed=seed, every_bin=False, one_window=True)  # refuses networks that take no events
        target = self.contract.input.binning
        assert target is not None
        source = _source(recording, index).sorted()  # as in training
        adapter = (fit or Fit()).adapter(source, target.sensor, self.contract.input.fit)
        (decision,) = [*session.push(adapter(source.recording.events)), *session.flush()]
        outside = session.progress.outside
        # The adapter drops events off the source's sensor and outside the region that the network sees.
        beside = outside.off_sensor + sum(adapter.dropped.values())
        return replace(decision, outside=replace(outside, off_sensor=beside))

    def _input(self, x: NDArray[Any]) -> Floats:
        x = np.asarray(x)
        if x.dtype != np.float32 and x.dtype.kind not in "iub":
            raise AxonnxError(
                f"{self.program.name}: the input is {x.dtype}; expected float32 or integers. Convert it if this "
                f"loses nothing"
            )
        shape = self.contract.input.shape
        if x.ndim != len(shape) + 2 or x.shape[2:] != shape or 0 in x.shape:
            expected = ["T", "B", *shape] if self._spiking else ["B", *shape]
            got = list(x.shape) if self._spiking else list(x.shape[1:])
            raise AxonnxError(f"{self.program.name}: the input has shape {got}; expected {expected} without empty axes")
        return np.ascontiguousarray(x, np.float32)

    def _check_run(self, state: State, x: Floats, samples: Sequence[int]) -> None:
        if self._spiking and state.batch != x.shape[1]:
            raise AxonnxError(
                f"{self.program.name}: the state has {state.batch} samples, but the input has {x.shape[1]}; use equal "
                f"numbers"
            )
        if len(samples) != x.shape[1]:
            raise AxonnxError(
                f"{self.program.name}: samples has {len(samples)} numbers, but the input has {x.shape[1]} samples; "
                f"give one number for each sample"
            )

    def _noisy(self, state: State, x: Floats, seed: int, samples: Sequence[int], trace: bool) -> list[Chunk]:
        """Draw noise for some steps at a time to limit memory; the numbers do not depend on how many."""
        neurons = sum(self.program.buffers[name].size for name in self.program.noises) * x.shape[1]
        length = max(1, NOISE_AT_ONCE // max(neurons, 1))
        chunks: list[Chunk] = []
        for start in range(0, len(x), length):
            part = x[start : start + length]
            noise = self.noise(seed, samples, state.step, len(part))
            chunks.append(self.engine.advance(state, part, noise, trace))
            state = chunks[-1].state
        return chunks

    def _result(self, chunks: list[Chunk]) -> RunResult:
        last = chunks[-1]
        if len(chunks) > 1:
            traces = {name: np.concatenate([chunk.traces[name] for chunk in chunks]) for name in last.traces}
            counted = [chunk.activity for chunk in chunks if chunk.activity is not None]
            activity = reduce(lambda first, then: first.plus(then), counted) if counted else None
            last = last._replace(activity=activity, traces=traces)
        return RunResult(last, self.contract)


def _source(recording: Events | Recording | str | os.PathLike[str], index: int | None) -> FileSource:
    from axonnx.runtime.events.arrays import EVENT, as_events
    from axonnx.runtime.readers import Recording, read_events
    from axonnx.runtime.streams.sources import FileSource

    if isinstance(recording, np.ndarray):
        events = recording if recording.dtype == EVENT or not recording.dtype.names else as_events(recording)
        return FileSource("these events", Recording(events, "memory"))
    if isinstance(recording, Recording):
        return FileSource("this recording", recording)
    return FileSource(os.fspath(recording), read_events(Path(recording), index=index))


def load(path: str | os.PathLike[str], engine: EngineName = "auto", threads: int = 1) -> Model:
    """Load an exported file. Every fault of the file is reported now, not when it runs.

    Args:
        path: The ONNX file.
        engine: Inference engine: ``"auto"`` (the fastest), ``"native"``, ``"numpy"`` or ``"ort"`` (onnxruntime).
        threads: Number of threads.

    Returns:
        A model, ready to run.

    Raises:
        AxonnxError: If the file is missing, damaged or of an unknown version, or an option is wrong.

    Examples:
        >>> model = axonnx.load("digits.onnx")
        >>> model.contract.classes[:3], model.contract.input.steps
        (('0', '1', '2'), 30)
    """
    if engine not in ENGINES:
        raise AxonnxError(f"unknown engine {engine!r}; expected one of {', '.join(ENGINES)}")
    if threads < 1:
        raise AxonnxError(f"threads is {threads}; expected 1 or more")
    file = read_model_file(path)
    graph = step_graph(file)
    program = Compilation(file, graph).program()
    return Model(program, make_engine(engine, program, graph, threads))
