"""A folder of compiled code, built as it is on disk, against the numpy engine on its file: spikes, logits, decisions.

Each way to run the code (``compiled_targets``) is built twice: once so that it prints the spikes of every layer, which
names the place of a difference, and once as it ships, with its self-test. A folder that never fires proves nothing.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.files import sha256_of
from axonnx.runtime.codegen.layout import LANES, Layout
from axonnx.runtime.codegen.plan import Plan
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.format.names import LOGITS, MEMBRANE, SPIKES
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.measure.comparison import Comparison, Difference
from axonnx.runtime.measure.compiled_inputs import CompiledInput, as_input, crafted
from axonnx.runtime.measure.compiled_targets import (
    BrokenCodeError,
    BuiltCode,
    Runner,
    missing,
    read_record,
    refuse_missing,
    runners_of,
)
from axonnx.runtime.measure.engine_inputs import some_frames
from axonnx.runtime.measure.engine_result import CompiledProgram, CompiledResult
from axonnx.runtime.measure.samples import Samples
from axonnx.runtime.program.compilation import compile_program
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.program.layer_noise import draw_noise
from axonnx.runtime.streams.probabilities import joint_logits, possible_classes

Floats = NDArray[np.float32]
SAMPLES = 16
FIRED = re.compile(r"spikes \d+( \d+(:\S+)?)*")  # the sum of a layer's membranes, and where it fired
SEED = 0  # of a stochastic network's noise in compiled programs


@dataclass(frozen=True, eq=False)
class Expected:
    """What a network does on one input: traces and logits [members, windows, classes], and its decisions."""

    given: CompiledInput
    seen: dict[str, Floats]
    winners: list[int]

    def first_window(self) -> Expected:
        """Return the same of the first window."""
        seen = {name: values[:, :1] for name, values in self.seen.items()}
        return Expected(self.given, seen, self.winners[:1])


def check_compiled(
    path: Path,
    folder: Path,
    data: Callable[[Contract], Samples] | None = None,
    limit: int | None = None,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _line: None,
) -> CompiledResult:
    """Compare the code in ``folder`` with the file at ``path``, on generated input and on samples of ``data``."""
    record = read_record(folder)
    runners = runners_of(record["target"])
    refuse_missing(runners[0], record["target"])
    program = compile_program(read_model_file(path))
    inputs, source = list(crafted(program, seed)), f"generated with seed {seed}"
    given = None if data is None else data(program.contract)
    if given is not None:
        random, frames = np.random.default_rng(seed), some_frames(given, limit or SAMPLES)
        inputs += [as_input(f"sample {n}", values, program.contract.input, random) for n, values in enumerate(frames)]
        source = f"{len(frames)} samples of {given.source}, and {source}"
    expected = [expect(program, each) for each in inputs]
    found, fired = _Findings(path, record), _fired(program, expected)
    found.silent(fired)
    for runner in runners:
        tell(f"{record['target']}: {runner.name} …")
        if absent := missing(runner):
            found.left_out.append(f"{runner.name}: {', '.join(absent)} is not installed")
        else:
            found.compare(runner, program, folder, expected)
    return CompiledResult(
        model=str(path),
        file_sha256=sha256_of(path),
        folder=str(folder),
        target=record["target"],
        source=source,
        data_sha256=None if given is None else given.sha256,
        ties=_ties(program, expected),
        fired=fired,
        implementations=tuple(found.programs),
        left_out=tuple(found.left_out),
        failures=tuple(found.failures),
    )


def expect(program: Program, given: CompiledInput) -> Expected:
    """Run the numpy engine on an input; each window is a sample of its own."""
    count = len(given.frames)
    x = to_input(given.frames.swapaxes(0, 1), program.contract.input)
    noise = draw_noise(program, SEED, range(count), 0, len(x)) if program.noises else {}
    engine = NumpyEngine(program)
    chunk = engine.advance(engine.initial_state(count), x, noise, trace=True)
    logits = program.contract.logits_of(chunk.logits, len(x))
    winners = [int(joint_logits(logits[:, window]).argmax()) for window in range(count)]
    return Expected(given, {LOGITS: logits, **chunk.traces}, winners)


@dataclass
class _Findings:
    """What is found of all builds of a folder."""

    path: Path
    record: dict[str, str]
    programs: list[CompiledProgram] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        sha256 = sha256_of(self.path)
        if self.record["sha256"] != sha256:
            self.failures.append(
                f"the folder says that it was compiled from a file with the sha256 {self.record['sha256']}; "
                f"{self.path} has {sha256}"
            )

    def silent(self, fired: dict[str, int]) -> None:
        """Refuse layers that never fire: where nothing happens, nothing is proved."""
        layers = [name for name, count in fired.items() if not count]
        if layers:
            self.failures.append(
                f"layer {layers[0]!r} never fired, so nothing is proved of it; give recordings as data"
            )

    def compare(self, runner: Runner, program: Program, folder: Path, expected: Sequence[Expected]) -> None:
        """Build both programs of a runner, and compare what they print."""
        with tempfile.TemporaryDirectory(prefix="axonnx-compiled-") as place:
            for traced in (True, False) if runner.ships else (True,):
                name = f"{self.record['target']}, {runner.name}{', every spike' if traced else ', as it ships'}"
                try:
                    built = BuiltCode(runner, folder, Path(place) / ("traced" if traced else "shipped"), traced)
                    part = expected if traced else [each.first_window() for each in expected]
                    texts = built.run([each.given.text for each in part], all_windows=traced)
                    compared, wrong = _Reading(name, program, runner, traced).compare(texts, part)
                    self.programs.append(compared)
                    self.failures += dict.fromkeys([*wrong[:1], *wrong[-1:]])
                except BrokenCodeError as fault:
                    self.failures.append(f"{name}: the program {fault}")


class _Reading:
    """Read what a program prints, which must have its number of lines, and compare it."""

    def __init__(self, name: str, program: Program, runner: Runner, traced: bool) -> None:
        self.name, self.program, self.traced = name, program, traced
        self.timed = program.contract.kind == "spiking"
        self.layouts = {layer.name: Layout(layer.shape, 1, flat=True) for layer in program.layers}
        if runner.padding is not None:
            plan = Plan(program, runner.padding, dense=runner.padding == LANES)
            places = {name: plan.trace_places[SPIKES + name][1] for name in self.layouts}
            self.layouts = {name: plan.storage.layouts[place] for name, place in places.items()}

    def compare(self, texts: Sequence[str], expected: Sequence[Expected]) -> tuple[CompiledProgram, list[str]]:
        """Compare all that the program prints, and return with it the wrong decisions in words."""
        comparison, done = Comparison(self.name, timed=self.timed), 0
        wrong: list[str] = []
        lines = [line for text in texts for line in text.splitlines()]
        fired, rest = ([line for line in lines if bool(FIRED.fullmatch(line)) is each] for each in (True, False))
        for each in expected:
            try:
                wrong += self._compare_one(fired, rest, each, comparison, done)
            except BrokenCodeError as fault:
                return self._result(comparison, done), [
                    *wrong,
                    f"{self.name}: the program {fault} on {each.given.name}",
                ]
            done += len(each.winners)
        if fired or rest:
            wrong.append(f"{self.name}: the program prints {len(fired) + len(rest)} lines more than expected")
        return self._result(comparison, done), wrong

    def _compare_one(
        self, fired: list[str], rest: list[str], each: Expected, comparison: Comparison, done: int
    ) -> list[str]:
        """Take the lines of one input, compare them, and return the wrong decisions in words."""
        windows, before = len(each.winners), len(comparison.differences)
        spikes = self._taken(fired, windows * each.given.frames.shape[1] * len(self.layouts) * self.traced)
        told = np.array(self._taken(rest, windows * (1 + self._members)), object).reshape(windows, -1)
        seen = {LOGITS: self._logits(told[:, 1:])} | (self._spikes(spikes, windows) if self.traced else {})
        comparison.margins = partial(_margin, self.program, each)
        comparison.add(each.seen, seen, done)
        for place in range(before, len(comparison.differences)):
            comparison.differences[place] = _placed(comparison.differences[place], each, done)
        wrong = self._decisions(told[:, 0].tolist(), each)
        if self.traced and len(comparison.differences) == before:  # a spike that differs says more
            wrong += self._membranes(spikes, each)
        return wrong

    def _result(self, comparison: Comparison, done: int) -> CompiledProgram:
        return CompiledProgram(
            **CompiledProgram.figures(comparison),
            spikes=comparison.compared["spikes"],
            logits=comparison.compared["logits"],
            decisions=done,
        )

    @property
    def _members(self) -> int:
        return self.program.contract.collapse.members

    def _taken(self, lines: list[str], count: int) -> list[str]:
        """Take lines from the front."""
        if len(lines) < count:
            raise BrokenCodeError("prints too few lines")
        found = lines[:count]
        del lines[:count]
        return found

    def _logits(self, lines: NDArray[Any]) -> Floats:
        """Return logits [members, windows, classes]."""
        classes = len(self.program.contract.classes)
        try:
            found = np.array([[line.split()[1:] for line in row] for row in lines.tolist()], np.float32)
            return found.reshape(len(lines), self._members, classes).swapaxes(0, 1)
        except ValueError:
            raise BrokenCodeError(f"prints no {classes} logits, but {lines[0, 0]!r}") from None

    def _spikes(self, lines: list[str], windows: int) -> dict[str, Floats]:
        """Return spikes [T, windows, …] of each layer."""
        found, count = {}, len(self.layouts)
        for number, (name, layout) in enumerate(self.layouts.items()):
            mine = lines[number::count]
            memory = np.zeros((len(mine), layout.size), np.float32)
            for row, line in zip(memory, mine, strict=True):
                for word in line.split()[2:]:
                    place, _, value = word.partition(":")
                    if int(place) >= layout.size:
                        raise BrokenCodeError(
                            f"prints a spike at place {place} of layer {name!r}, which has {layout.size}"
                        )
                    row[int(place)] = float(value or 1)
            values = layout.unpack(memory)
            found[SPIKES + name] = values.reshape(windows, -1, *values.shape[1:]).swapaxes(0, 1)
        return found

    def _membranes(self, lines: list[str], each: Expected) -> list[str]:
        """Return the first membranes that differ although every spike is equal."""
        found = np.array([int(line.split()[1]) for line in lines], np.int64).reshape(-1, len(self.layouts))
        expected = np.zeros_like(found)
        for number, (name, layout) in enumerate(self.layouts.items()):
            membranes = each.seen.get(MEMBRANE + name)
            if membranes is not None:
                rows = membranes.swapaxes(0, 1).reshape(-1, *membranes.shape[2:])
                expected[:, number] = sums_of(layout.pack(rows))
        if not (found != expected).any():
            return []
        row, number = np.argwhere(found != expected)[0].tolist()
        window, step = divmod(row, each.given.frames.shape[1])
        return [
            f"{self.name}: layer {list(self.layouts)[number]!r}, time step {step}, window {window} of "
            f"{each.given.name}: its membranes have other bits, although every spike is equal"
        ]

    def _decisions(self, lines: list[str], each: Expected) -> list[str]:
        """Return what is wrong with the labels in front of lines."""
        wrong, certainty = [], self.program.contract.certainty
        for window, (line, winner) in enumerate(zip(lines, each.winners, strict=True)):
            label = self.program.contract.classes[winner]
            if not line.startswith(f"{label}  "):
                where = f"{self.name}: window {window} of {each.given.name}"
                wrong.append(f"{where}: it says {line.partition('  ')[0]!r}, the file says {label!r}")
            elif certainty is not None:
                steps = each.given.frames.shape[1]
                marks = possible_classes(each.seen[LOGITS][:, window], certainty.margin(steps))
                names = [self.program.contract.classes[number] for number in np.flatnonzero(marks)]
                if f"  possible: {', '.join(names)}  (" not in line:
                    where = f"{self.name}: window {window} of {each.given.name}"
                    wrong.append(f"{where}: it says {line.partition('  (')[0]!r}; possible are {', '.join(names)}")
        return wrong


def sums_of(rows: Floats) -> NDArray[np.uint32]:
    """Return for each row the sum of its numbers' bits, each times an odd number, as a compiled program prints it."""
    words = (rows + np.float32(0)).view(np.uint32)  # one zero
    factors = 2 * np.arange(rows.shape[1], dtype=np.uint32) + np.uint32(1)
    sums: NDArray[np.uint32] = (words * factors).sum(1, dtype=np.uint32)
    return sums


def _margin(program: Program, each: Expected, layer: str, index: tuple[int, ...]) -> dict[str, float | str]:
    """Return the threshold of a neuron, and how far the expected membrane is from it."""
    membranes, threshold = each.seen.get(MEMBRANE + layer), program.thresholds.get(layer)
    if membranes is None or threshold is None:
        return {}
    reached = float(np.broadcast_to(threshold, membranes.shape[2:])[index[2:]])
    return {"threshold": reached, "distance": float(membranes[index]) - reached}


def _placed(difference: Difference, each: Expected, offset: int) -> Difference:
    """Name the input of a difference."""
    return difference.model_copy(update={"reason": f"window {difference.sample - offset} of {each.given.name}"})


def _ties(program: Program, expected: Sequence[Expected]) -> int:
    """Count expected membranes that are exactly on their thresholds."""
    thresholds = program.thresholds
    traces = [(name.removeprefix(MEMBRANE), values) for each in expected for name, values in each.seen.items()]
    return sum(int((values == thresholds[name]).sum()) for name, values in traces if name in thresholds)


def _fired(program: Program, expected: Sequence[Expected]) -> dict[str, int]:
    """Count the expected spikes of each layer."""
    names = [layer.name for layer in program.layers]
    return {name: sum(int(np.count_nonzero(each.seen[SPIKES + name])) for each in expected) for name in names}
