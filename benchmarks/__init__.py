"""Speed, measured: ``python -m benchmarks`` runs all, ``python -m benchmarks.inference`` one."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as `axonnx train` has it; read once, when torch is loaded
