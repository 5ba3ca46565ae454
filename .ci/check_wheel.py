"""Check an installed wheel: the core loads, and every instruction set gives the bits of the engine numpy.

    python .ci/check_wheel.py

Runs the three small networks of ``axonnx doctor``. Ends with 1 if the core is missing or a bit differs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.resources import as_file, files

import numpy as np

from axonnx import native
from axonnx.runtime.model import load

NETWORKS = ("recurrent-int8", "resnet-mfa", "mlp-zero-stochastic")  # recurrence, convolutions, noise


def compare_engines() -> int:
    """Return how many logits were compared; raise if one differs."""
    compared, folder = 0, files("axonnx.runtime.doctor")
    for name in NETWORKS:
        with as_file(folder / f"{name}.onnx") as network, as_file(folder / f"{name}.npz") as kept:
            known = np.load(kept)
            x, seed = known["x"], int(known["seed"])
            found = {engine: load(network, engine).run(x, seed=seed).member_logits for engine in ("native", "numpy")}
            assert found["native"].tobytes() == found["numpy"].tobytes() == known["logits"].tobytes(), name
            compared += found["native"].size
    return compared


def main() -> int:
    """Check the set that AXONNX_ISA names; without it, every set that this processor can run."""
    core = native.needed_core()
    if os.environ.get("AXONNX_ISA"):
        print(f"{core.isa}: {compare_engines()} logits, equal bit for bit")
        return 0
    print(f"{sys.platform}: {native.FOLDER}, {', '.join(core.isas)}", flush=True)
    # The set is chosen once in a process, so each is checked in one of its own.
    codes = [
        subprocess.run([sys.executable, __file__], env={**os.environ, "AXONNX_ISA": isa}, check=False).returncode
        for isa in core.isas
    ]
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main())
