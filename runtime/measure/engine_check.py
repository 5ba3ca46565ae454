"""Every engine and two stock runtimes on one file and the same input, number by number; no training network, no torch.

The numpy engine is the executable specification; all others are held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import sha256_of
from axonnx.runtime.engines.choose import native_engines
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.engines.ort_engine import OrtEngine, stock_reference, stock_session
from axonnx.runtime.engines.state import State
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.model_file import ModelFile, read_model_file
from axonnx.runtime.format.names import CLOCK, LOGITS, NEXT, TRACE, under
from axonnx.runtime.format.results import member_logits
from axonnx.runtime.measure.comparison import Comparison, Seen
from axonnx.runtime.measure.engine_inputs import EngineInput, generated, on_thresholds
from axonnx.runtime.measure.engine_result import EngineImplementation, EngineResult
from axonnx.runtime.program.compilation import Compilation
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.program.layer_noise import draw_noise
from axonnx.runtime.program.step_graph import StepGraph, step_graph

Floats = NDArray[np.float32]
REFERENCE_SAMPLES = 2  # onnx.reference is slow
BATCH = 16


def check_engines(path: Path, data: Callable[[Contract], EngineInput] | None = None, seed: int = 0) -> EngineResult:
    """Check structure and certificates, then all implementations on ``data`` (or generated input) and on ties.

    Ends with the first batch in which anything differs.
    """
    found = EngineResult(model=str(path), file_sha256=sha256_of(path))
    try:
        file = read_model_file(path)
        graph = step_graph(file)
        program = Compilation(file, graph).program()
    except AxonnxError as refusal:
        return found.model_copy(update={"refusal": str(refusal)})
    contract = file.contract
    given = generated(contract, seed) if data is None else data(contract)
    entries, ties = _compare_all(_Implementations(file, graph, program), given.x, seed)
    return found.model_copy(
        update={
            "source": given.source,
            "data_sha256": given.sha256,
            "structure": (f"contract, operator bodies and {len(contract.synapses)} grid certificates hold",),
            "ties": ties,
            "implementations": tuple(EngineImplementation(**EngineImplementation.figures(entry)) for entry in entries),
        }
    )


def _compare_all(them: _Implementations, x: Floats, seed: int) -> tuple[list[Comparison], int]:
    """Compare every implementation; also return how many membranes were put on their thresholds."""
    entries: dict[str, Comparison] = {}
    ties, timed = 0, them.program.contract.kind == "spiking"

    def compare(expected: Seen, others: Iterator[tuple[str, Seen]]) -> None:
        for name, seen in others:
            entries.setdefault(name, Comparison(name, timed=timed)).add(expected, seen)

    for start in range(0, x.shape[1], BATCH):
        part = x[:, start : start + BATCH]
        numbers = range(start, start + part.shape[1])
        noise = draw_noise(them.program, seed, numbers, 0, len(x)) if them.program.noises else {}
        compare(them.expected(part, noise), them.others(part, noise, first=start == 0))
        if start == 0 and them.program.states:
            state, ties = on_thresholds(them.program, part, noise)
            compare(them.expected(part, noise, state), them.engines_only(part, noise, state))
        if any(entry.first is not None for entry in entries.values()):
            break
    return list(entries.values()), ties


class _Implementations:
    """One file in every engine there is, and in stock runtimes as it stands."""

    def __init__(self, file: ModelFile, graph: StepGraph, program: Program) -> None:
        self.file, self.program = file, program
        self.numpy = NumpyEngine(program)
        self.engines: list[tuple[str, Engine, bool]] = []  # name, engine, one step at a time
        for compiled in native_engines(program):
            self.engines += [(compiled.name, compiled, False), (f"{compiled.name}, step by step", compiled, True)]
        ort = OrtEngine(program, graph)
        self.engines += [("onnxruntime, steps in a loop", ort, False), ("onnxruntime, step by step", ort, True)]
        self._session = stock_session(file.proto)

    def expected(self, x: Floats, noise: Seen, state: State | None = None) -> Seen:
        """Run the specification."""
        return self._run(self.numpy, x, noise, state, [len(x)])

    def others(self, x: Floats, noise: Seen, first: bool) -> Iterator[tuple[str, Seen]]:
        """Yield the traces of everything else, from the initial state."""
        yield from self.engines_only(x, noise, None)
        yield "onnxruntime, the file as it is", self._file(self._session, x, noise)
        if first:
            few = {name: drawn[:, :REFERENCE_SAMPLES] for name, drawn in noise.items()}
            yield (
                "onnx.reference, the file as it is",
                self._file(stock_reference(self.file.proto), x[:, :REFERENCE_SAMPLES], few),
            )

    def engines_only(self, x: Floats, noise: Seen, state: State | None) -> Iterator[tuple[str, Seen]]:
        """Yield the traces of every engine; engines can begin with any state."""
        for name, engine, stepwise in self.engines:
            if not stepwise or len(x) > 1:
                yield name, self._run(engine, x, noise, state, [1] * len(x) if stepwise else [len(x)])

    def _run(self, engine: Engine, x: Floats, noise: Seen, state: State | None, lengths: Sequence[int]) -> Seen:
        at, chunks = 0, []
        state = engine.initial_state(x.shape[1]) if state is None else state
        for length in lengths:
            drawn = {name: value[at : at + length] for name, value in noise.items()}
            chunks.append(engine.advance(state, x[at : at + length], drawn, trace=True))
            state, at = chunks[-1].state, at + length
        traces = {name: np.concatenate([chunk.traces[name] for chunk in chunks]) for name in chunks[0].traces}
        return {LOGITS: self.program.contract.logits_of(chunks[-1].logits, len(x)), **traces}

    def _file(self, run: Callable[[dict[str, Any]], dict[str, Any]], x: Floats, noise: Seen) -> Seen:
        contract = self.program.contract
        if contract.form == "step" and contract.kind == "spiking":
            return self._steps(run, x, noise)
        timed = contract.kind == "spiking"
        feeds = {contract.input.name: x, **noise}
        found = run(feeds if timed else {name: value[0] for name, value in feeds.items()})
        traces = {name: value if timed else value[None] for name, value in under(TRACE, found).items()}
        return {LOGITS: member_logits(found), **traces}

    def _steps(self, run: Callable[[dict[str, Any]], dict[str, Any]], x: Floats, noise: Seen) -> Seen:
        """Run a file that holds one step, again and again, with the states that it returns."""
        states: dict[str, Any] = dict(self.numpy.initial_state(x.shape[1]).arrays)
        contract, clocked = self.program.contract, CLOCK in [entry.name for entry in self.file.proto.graph.input]
        for step in range(len(x)):
            clock = {CLOCK: np.array([step], np.int64)} if clocked else {}
            drawn = {name: value[step] for name, value in noise.items()}
            found = run({self.program.input: x[step], **drawn, **states, **clock})
            states = {name: found[NEXT + name] for name in states}
        totals: Floats = np.stack([states[name] for name in self.program.totals])
        return {LOGITS: contract.logits_of(totals, len(x))}
