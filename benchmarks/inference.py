"""Inference on one CPU: our engines, onnxruntime in four forms, and peers in their best; same weights, one run.

python -m benchmarks.inference            prints the tables
python -m benchmarks.inference --write    writes them to docs/benchmarks-inference.md as well
python -m benchmarks.inference --quick    fewer turns
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from axonnx.compiling import compile_to
from axonnx.export.collapsed import CollapseSettings
from axonnx.runtime.model import load
from benchmarks import peers
from benchmarks.machine import machine
from benchmarks.networks import Timed, dense, recurrent, resnet20
from benchmarks.peers.onnxruntime_forms import layer_wise, session
from benchmarks.timing import PROCESSOR, WALL, Times, side_by_side, table

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-inference.md"
OURS = "axonnx native"
BEST = "onnxruntime, best exact form (layer-wise, input GEMM hoisted)"
FOLDED = "onnxruntime, the same folded (not our bits)"
DENSITIES = (0.001, 0.01, 0.03, 0.11, 0.3, 0.6, 1.0)


def sequences(net: Timed, turns: int) -> str:
    """Whole sequences of the recurrent network, batch 1, one thread."""
    x = net.input(0.11)
    model, reference = (load(net.files["sequence"], engine) for engine in ("native", "numpy"))
    best, scan = session(layer_wise(net.collapsed)), session(str(net.files["sequence"]))
    folded = session(layer_wise(net.collapsed, net.steps))
    tensor = torch.from_numpy(x)
    step, (others, absent) = StepByStep(net), peers.installed(net.collapsed, tensor)
    logits = best.run(None, {"events": x})[0]
    assert all(np.array_equal(each.run(x).logits, logits) for each in (model, reference))
    assert np.allclose(folded.run(None, {"events": x})[0], logits, atol=peers.ROUNDING)
    traces = reference.run(x, trace=True).traces
    ours = [torch.from_numpy(traces[f"spikes/{layer.name}"]) for layer in reference.program.layers]
    notes = [peers.check(peer, tensor, ours, torch.from_numpy(logits)) for peer in others]
    times = side_by_side(
        {
            OURS: lambda: model.run(x),
            **_stored_otherwise(net, x),
            FOLDED: lambda: folded.run(None, {"events": x}),
            BEST: lambda: best.run(None, {"events": x}),
            "onnxruntime, Scan (the exported file)": lambda: scan.run(["logits"], {"events": x}),
            "onnxruntime, step by step": lambda: step.run(x),
            "axonnx numpy (reference)": lambda: reference.run(x),
            **{peer.name: lambda logits=peer.logits: logits(tensor) for peer in others},
        },
        turns,
        seconds=20.0,
    )
    title = f"700-256-256-20 recurrent, T = 100, batch 1, one thread; input 11 %, hidden {net.rate:.1%}"
    made = table(title, ["engine", "ms", "best ms", "× native"], _rows(times, OURS))
    return "\n".join([made, *_about_peers(notes, absent)])


def _stored_otherwise(net: Timed, x: np.ndarray, threads: int = 1) -> dict[str, Callable[[], object]]:
    """The same network with its weights stored otherwise, so other weights and other bits."""
    folder, found = net.files["sequence"].parent, {}
    for weights in ("float32", "int8"):
        file = recurrent(folder, settings=CollapseSettings(weights=weights)).files["sequence"]
        model = load(file, "native", threads)
        found[f"{OURS}, {weights} file"] = lambda run=model.run: run(x)
    return found


def _about_peers(notes: list[str], absent: list[str]) -> list[str]:
    lines = []
    if notes:
        lines.append(
            f"Our engines and onnxruntime give the same bits, folded (reset in the recurrent matrix, read-out as one "
            f"product) excepted. The other libraries are in their best form: `inference_mode`, input products of all "
            f"steps at once, traced and frozen or compiled. They round differently; beside our file, "
            f"{'; '.join(notes)}. How each is made the same network stands in `benchmarks/peers`.\n"
        )
    return [*lines, f"Not installed here, so not timed: {', '.join(absent)}.\n"] if absent else lines


class StepByStep:
    """onnxruntime called once for each time step."""

    def __init__(self, net: Timed) -> None:
        self.session = session(str(net.files["step"]))
        entering = [entry for entry in self.session.get_inputs() if entry.name != "events"]
        self.zeros = {entry.name: np.zeros((1, *entry.shape[1:]), np.float32) for entry in entering}
        self.names = [f"next/{name}" for name in self.zeros]

    def step(self, x: np.ndarray, state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(zip(state, self.session.run(self.names, {"events": x, **state}), strict=True))

    def run(self, x: np.ndarray) -> dict[str, np.ndarray]:
        state = self.zeros
        for frame in x:
            state = self.step(frame, state)
        return state


def sweep(folder: Path, turns: int, title: str, **how: float) -> str:
    """Input densities from next to nothing to everything, with weights of 16 and of 8 bits."""
    nets = [recurrent(folder, settings=CollapseSettings(weights=weights), **how) for weights in ("int16", "int8")]
    rows = []
    for density in DENSITIES:
        cells, ratios = [], []
        for net in nets:
            x, best = net.input(density), session(layer_wise(net.collapsed))
            times, hidden = _against(net, x, lambda given=x, run=best.run: run(None, {"events": given}), turns)
            cells += [f"{t.median:.3f}" for t in times]
            ratios.append(_ratio(*times))
        rows.append([f"{density:.1%}", f"{hidden:.1%}", *cells, *ratios])
    ours = [f"{which} ms" for weights in ("int16", "int8") for which in (f"native, {weights}", "onnxruntime")]
    head = ["input", "hidden", *ours, "onnxruntime / native, int16", "int8"]
    return table(f"{title}; onnxruntime in its best exact form", head, rows)


def residual(folder: Path, turns: int) -> str:
    """Spiking ResNet-20."""
    rows: list[list[str]] = []
    for weights in ("int16", "int8", "float32"):
        for density, rate in ((0.08, 0.08), (1.0, 0.9)):
            net = resnet20(folder, density, rate, CollapseSettings(weights=weights))
            rows.append([weights, f"{density:.0%}", *_beside_scan(net, net.input(density), turns)])
    head = ["weights", "input", "layers", "native ms", "onnxruntime ms", "onnxruntime / native"]
    return table("Spiking ResNet-20 (32→64→128 channels, 32 × 32), T = 16, batch 1, one thread", head, rows)


def dense_batches(folder: Path, turns: int) -> str:
    """A network without recurrence on batches whose input is busy."""
    rows = []
    for density in (0.2, 0.5, 1.0):
        net = dense(folder, density)
        rows.append([f"{density:.0%}", *_beside_scan(net, net.input(density, batch=32), turns)])
    head = ["input", "layers", "native ms", "onnxruntime ms", "onnxruntime / native"]
    return table("512-128-128-10, T = 30, batch 32, one thread; onnxruntime on the same file", head, rows)


def _beside_scan(net: Timed, x: np.ndarray, turns: int) -> list[str]:
    """The share of neurons that fire, our time, that of onnxruntime on the same file, and their ratio."""
    scan = session(str(net.files["sequence"]))
    times, hidden = _against(net, x, lambda: scan.run(["logits"], {"events": x}), turns)
    return [f"{hidden:.1%}", *(f"{t.median:.2f}" for t in times), _ratio(*times)]


def _against(net: Timed, x: np.ndarray, theirs: Callable[[], object], turns: int) -> tuple[list[Times], float]:
    """Our engine's times and onnxruntime's, and the share of neurons that fire."""
    model = load(net.files["sequence"], "native")
    spikes = sum(int(counts.sum()) for counts in model.run(x).activity.spikes.values())
    neurons = sum(layer.size for layer in model.program.layers)
    times = side_by_side({OURS: lambda: model.run(x), "onnxruntime": theirs}, turns)
    return list(times.values()), spikes / (neurons * x.shape[0] * x.shape[1])


def batches(net: Timed, turns: int) -> str:
    """Many samples, one thread and two."""
    x, rows = net.input(0.11, batch=128), []
    for threads in (1, 2):
        model = load(net.files["sequence"], "native", threads)
        scan, best = session(str(net.files["sequence"]), threads), session(layer_wise(net.collapsed), threads)
        folded = session(layer_wise(net.collapsed, net.steps), threads)
        times = side_by_side(
            {
                OURS: lambda: model.run(x),
                **_stored_otherwise(net, x, threads),
                FOLDED: lambda: folded.run(None, {"events": x}),
                BEST: lambda: best.run(None, {"events": x}),
                "onnxruntime, Scan": lambda: scan.run(["logits"], {"events": x}),
            },
            turns,
            clock=PROCESSOR if threads == 1 else WALL,
        )
        rows += [[str(threads), *row] for row in _rows(times, OURS)]
    head = ["threads", "engine", "ms", "best ms", "× native"]
    return table("700-256-256-20 recurrent again, batch 128; input 11 %", head, rows)


def streaming(net: Timed, turns: int) -> str:
    """Single steps called from Python, a hundred in a row."""
    x = net.input(0.11)
    model, step = load(net.files["sequence"]), StepByStep(net)
    stepper = model.stepper()

    def as_values() -> None:
        state = model.initial_state(1)
        for frame in x:
            state, _ = model.step(state, frame)

    times = side_by_side(
        {
            "axonnx stepper.step(x): state kept inside": lambda: [stepper.step(frame) for frame in x],
            "axonnx model.step(state, x): state as a value": as_values,
            "onnxruntime, session.run on the step file": lambda: step.run(x),
        },
        turns,
    )
    unit, scale = next(iter(times.values())).median, 1e3 / len(x)
    rows = [
        [name, f"{scale * t.median:.1f}", f"{scale * t.best:.1f}", f"{t.median / unit:.1f}"]
        for name, t in times.items()
    ]
    return table("One time step called from Python, a hundred in a row", ["call", "µs", "best µs", "× stepper"], rows)


TIMED = """
#include <stdio.h>
#include <time.h>
#include "network.h"
static network_state n;
static float frames[100][NETWORK_INPUTS];
int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!file || fread(frames, sizeof frames, 1, file) != 1) return 1;
    clock_t begin = 0;
    for (int again = -20; again < 200; again++) { /* the first are not timed */
        if (again == 0) begin = clock();
        network_init(&n, 0, 0);
        for (int t = 0; t < 100; t++)
            if (network_step(&n, frames[t])) return 2;
    }
    printf("%f", (double)(clock() - begin) / CLOCKS_PER_SEC * 1e6 / 200 / 100);
    return 0;
}
"""


def compiled(folder: Path, turns: int) -> str:
    """One time step of the network as C, built by its own Makefile, and of the engine's run of a hundred."""
    net, rows = recurrent(folder), []
    made = compile_to(net.files["sequence"], folder / "compiled", "c").folder
    (made / "time.c").write_text(TIMED, "utf-8")
    subprocess.run(["make", "--silent", "-C", str(made)], check=True)
    objects = sorted(map(str, made.glob("*.o")))
    subprocess.run(["cc", "-std=gnu99", "-O2", str(made / "time.c"), *objects, "-o", str(made / "time")], check=True)
    model = load(net.files["sequence"], "native")
    for density in (0.02, 0.05, 0.11, 0.2, 0.6):
        x, theirs, ours = net.input(density), [], []
        x.tofile(made / "frames.bin")
        command = [str(made / "time"), str(made / "frames.bin")]
        for _ in range(turns):
            theirs.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            ours.append(side_by_side({OURS: lambda given=x: model.run(given)}, 3)[OURS].median * 1e3 / len(x))
        c, engine = float(np.median(theirs)), float(np.median(ours))
        rows.append([f"{density:.0%}", f"{c:.2f}", f"{engine:.2f}", f"{c / engine:.2f}"])
    head = ["input", "compiled C µs", "engine native µs", "compiled / engine"]
    return table("One time step of 700-256-256-20: `axonnx compile`, built by its Makefile, and the engine", head, rows)


COLD = """
import sys, time
began = time.perf_counter()
import numpy as np
import axonnx.runtime.model
imported = time.perf_counter()
model = axonnx.runtime.model.load(sys.argv[1], sys.argv[2])
loaded = time.perf_counter()
model.run(np.zeros((100, 1, 700), np.float32))
print(imported - began, loaded - imported, time.perf_counter() - loaded)
"""


def cold(net: Timed) -> str:
    """A fresh interpreter: import, load, first decision."""
    rows = []
    for engine in ("native", "ort", "numpy"):
        command = [sys.executable, "-c", COLD, str(net.files["sequence"]), engine]
        runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(3)]
        seconds = np.median([[float(word) for word in run.stdout.split()] for run in runs], axis=0)
        rows.append([engine, *(f"{value:.2f}" for value in seconds)])
    return table("Cold start, seconds", ["engine", "import", "load", "first decision"], rows)


def _rows(times: dict[str, Times], unit: str) -> list[list[str]]:
    return [
        [name, f"{t.median:.3f}", f"{t.best:.3f}", f"{t.median / times[unit].median:.1f}"] for name, t in times.items()
    ]


def _ratio(ours: Times, theirs: Times) -> str:
    return f"{theirs.median / ours.median:.2f}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inference", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    chosen, _ = parser.parse_known_args(arguments)
    turns = 8 if chosen.quick else 40
    torch.set_num_threads(1)
    parts = [
        "# Inference speed\n",
        "Made by `python -m benchmarks.inference --write`; medians, candidates taking turns, each warmed up before it "
        "is timed, 50 ms after the one before it. One thread is timed by the processor's clock, which leaves out other "
        "work; two by the wall's. Files store weights as int16, the default of `axonnx export`, unless a row says "
        "otherwise.\n",
        machine("onnxruntime", "torch", "numpy", "jax"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        net, place = recurrent(Path(folder)), Path(folder)
        busy = "Thresholds so low that every other neuron fires"
        tables = [
            lambda: sequences(net, turns),
            lambda: sweep(place, turns, "Density sweep, same network"),
            lambda: sweep(place, turns, busy, density=1.0, rate=0.9),
            lambda: residual(place, turns),
            lambda: batches(net, turns),
            lambda: dense_batches(place, turns),
            lambda: compiled(place, max(turns // 8, 3)),
            lambda: streaming(net, turns),
            lambda: cold(net),
        ]
        for make in tables:
            parts.append(make())
            print(parts[-1], flush=True)
    if chosen.write:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text("\n".join(parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
