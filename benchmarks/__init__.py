"""Speed, measured: ``python -m benchmarks`` runs all, ``python -m benchmarks.inference`` one."""
