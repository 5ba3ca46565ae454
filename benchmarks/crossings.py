"""Where dense products overtake event lists: the measurement behind ``DENSE_FROM`` of runtime/codegen/rows.py.

python -m benchmarks.crossings    prints milliseconds of both forms for input densities from 5 % to 100 %
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from axonnx.export.collapsed import CollapseSettings
from axonnx.runtime.engines.native_engine import NativeEngine
from axonnx.runtime.model import load
from benchmarks.networks import Timed, recurrent, resnet20
from benchmarks.timing import side_by_side, table

NEVER, MANY, SINGLE = (101, 101, 101, 101), (0, 101, 0, 101), (101, 0, 101, 0)
HEAD = ["input", "hidden", "by events ms", "tiles of several rows ms", "single rows ms"]


def crossing(net: Timed, title: str, densities: tuple[float, ...]) -> str:
    program, rows = load(net.files["sequence"], "numpy").program, []
    engines = [NativeEngine(program, dense_from=dense) for dense in (NEVER, MANY, SINGLE)]
    for density in densities:
        x = net.input(density)
        chunk = engines[0].advance(engines[0].initial_state(1), x, {})
        fired = sum(int(counts.sum()) for counts in chunk.activity.spikes.values())
        hidden = fired / (len(x) * sum(layer.size for layer in program.layers))
        runs = {str(n): lambda e=e, given=x: e.advance(e.initial_state(1), given, {}) for n, e in enumerate(engines)}
        times = side_by_side(runs, 10)
        rows.append([f"{density:.0%}", f"{hidden:.0%}", *(f"{t.median:.3f}" for t in times.values())])
    return table(title, HEAD, rows)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        for weights in ("int16", "int8"):
            settings = CollapseSettings(weights=weights)
            net = recurrent(Path(folder), settings=settings)
            print(crossing(net, f"700-256-256-20 recurrent, {weights}", (0.05, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0)))
            for rate in (0.08, 0.4, 0.9):
                images = resnet20(Path(folder), 1.0 if rate > 0.5 else rate, rate, settings)
                print(
                    crossing(images, f"ResNet-20, {weights}, layers set to fire at {rate:.0%}", (0.08, 0.3, 0.5, 1.0))
                )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
