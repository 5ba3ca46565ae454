"""How inference scales: time steps, batch, width and members of an ensemble, beside onnxruntime in its best form.

python -m benchmarks.scale            prints the tables
python -m benchmarks.scale --write    writes them to docs/benchmarks-scale.md as well
python -m benchmarks.scale --quick    smaller ends of the scales
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch

from axonnx.export.collapsed import CollapseSettings
from axonnx.runtime.model import load
from benchmarks.machine import machine
from benchmarks.networks import Timed, recurrent
from benchmarks.peers.onnxruntime_forms import layer_wise, session
from benchmarks.timing import Times, side_by_side, table

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-scale.md"
HEAD = ["axonnx native ms", "onnxruntime, best exact form ms", "folded ms", "best exact / native", "folded / native"]


def against(net: Timed, x: np.ndarray, turns: int) -> dict[str, Times]:
    """The native engine beside onnxruntime's two best forms."""
    model = load(net.files["sequence"], "native")
    best, folded = session(layer_wise(net.collapsed)), session(layer_wise(net.collapsed, len(x)))
    assert np.array_equal(model.run(x).logits, best.run(None, {"events": x})[0])
    return side_by_side(
        {
            "native": lambda: model.run(x),
            "best": lambda: best.run(None, {"events": x}),
            "folded": lambda: folded.run(None, {"events": x}),
        },
        turns,
    )


def row(name: str, times: dict[str, Times]) -> list[str]:
    ratios = (times[form].median / times["native"].median for form in ("best", "folded"))
    return [name, *(f"{t.median:.3f}" for t in times.values()), *(f"{ratio:.1f}" for ratio in ratios)]


def steps(net: Timed, lengths: tuple[int, ...], turns: int) -> str:
    rows = []
    for length in lengths:
        x = np.concatenate([net.input(0.11, seed=seed) for seed in range(-(-length // net.steps))])[:length]
        rows.append(row(f"{length:,}", against(net, np.ascontiguousarray(x), turns)))
    return table("Time steps: 700-256-256-20 recurrent, batch 1, one thread", ["T", *HEAD], rows)


def batches(net: Timed, sizes: tuple[int, ...], turns: int) -> str:
    rows = [row(str(size), against(net, net.input(0.11, batch=size), turns)) for size in sizes]
    return table("Batch: the same network, T = 100, one thread", ["samples", *HEAD], rows)


def widths(folder: Path, sizes: tuple[int, ...], turns: int) -> str:
    rows = []
    for width in sizes:
        net = recurrent(folder, width=width, steps=20)
        rows.append(row(f"{width:,}", against(net, net.input(0.11), turns)))
        for path in net.files.values():
            path.unlink()
    title = "Width: 700-n-n-20 recurrent, T = 20, batch 1, one thread; 5 % of neurons fire"
    return table(title, ["n", *HEAD], rows)


def members(folder: Path, sizes: tuple[int, ...], turns: int) -> str:
    """Ensembles of drawn weights: ours in one file, onnxruntime on the same file."""
    rows = []
    for size in sizes:
        net = recurrent(folder, settings=CollapseSettings(mode="sampled", members=size))
        x, model, scan = net.input(0.11), load(net.files["sequence"]), session(str(net.files["sequence"]))
        names = [entry.name for entry in scan.get_outputs() if entry.name.startswith("logits")]
        times = side_by_side(
            {"native": lambda: model.run(x), "ort": lambda: scan.run(names, {"events": x})}, turns, seconds=20.0
        )
        ours, theirs = times["native"].median, times["ort"].median
        each = f"{ours / size:.3f}"
        rows.append([str(size), f"{ours:.2f}", each, f"{theirs:.1f}", f"{theirs / ours:.1f}"])
    head = ["members", "axonnx native ms", "a member ms", "onnxruntime on the file ms", "onnxruntime / native"]
    return table("Members: 700-256-256-20 recurrent, T = 100, batch 1, one thread", head, rows)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--quick", action="store_true", help="smaller ends of the scales")
    chosen, _ = parser.parse_known_args(arguments)
    turns, end = (5, 2) if chosen.quick else (15, None)
    torch.set_num_threads(1)
    parts = [
        "# Inference at scale\n",
        "Made by `python -m benchmarks.scale --write`; medians of the processor's time, candidates taking turns. Many "
        "sessions at once are in [event speed](benchmarks-events.md).\n",
        machine("onnxruntime", "torch", "numpy"),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        net = recurrent(folder)
        for make in (
            lambda: steps(net, (10, 100, 1000)[:end], turns),
            lambda: batches(net, (1, 8, 32, 128)[:end], turns),
            lambda: widths(folder, (256, 512, 1024, 2048, 4096)[:end], turns),
            lambda: members(folder, (1, 8, 32)[:end], turns),
        ):
            parts.append(make())
            print(parts[-1], flush=True)
    if chosen.write:
        PAGE.write_text("\n".join(parts), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
