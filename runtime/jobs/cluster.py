"""Run jobs on many machines with Dask: on a running scheduler, or on workers that a batch system starts."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.runtime.jobs.work import Job, Outcome, attempt_alone

AHEAD = 4  # jobs submitted per thread of the cluster
SECONDS = 20  # time limit for finding the scheduler
BATCH_SYSTEMS = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "lsf": "LSFCluster",
    "htcondor": "HTCondorCluster",
}
SUBMIT = {"slurm": "sbatch", "pbs": "qsub", "sge": "qsub", "lsf": "bsub", "htcondor": "condor_submit"}
KNOWN = f"tcp://HOST:PORT, tls://HOST:PORT, or one of {', '.join(BATCH_SYSTEMS)} as in slurm:profile.yaml"


class ClusterPool:
    """The workers of a Dask cluster. If a worker dies, Dask gives its jobs to other workers."""

    def __init__(self, address: str) -> None:
        kind = address.partition(":")[0]
        if kind not in ("tcp", "tls", *BATCH_SYSTEMS):
            raise AxonnxError(f"unknown cluster {address!r}; expected {KNOWN}")
        self.address = address

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Yield outcomes as they arrive."""
        with _connected(self.address) as client:
            yield from _outcomes(client, deque(jobs))


def _outcomes(client: Any, waiting: deque[Job]) -> Iterator[Outcome]:
    from distributed import as_completed

    names: dict[str, str] = {}
    arriving = as_completed(loop=client.loop)
    while waiting or names:
        most = AHEAD * max(1, sum(client.nthreads().values()))  # workers come and go
        while waiting and len(names) < most:
            job = waiting.popleft()
            future = client.submit(attempt_alone, job, pure=False)
            names[future.key] = job.name
            arriving.add(future)
        future = next(arriving)
        yield _outcome(future, names.pop(future.key))


def _outcome(future: Any, name: str) -> Outcome:
    if future.status == "finished":
        outcome: Outcome = future.result()
        return outcome
    fault = future.exception() if future.status == "error" else "it was cancelled"
    return Outcome(name, fault=f"{type(fault).__name__}: {fault}")


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise AxonnxError("a cluster needs Dask: pip install 'axonnx[cluster]'") from None
    with _scheduler(address) as scheduler:
        try:
            client = Client(scheduler, timeout=SECONDS, set_as_default=False)
        except OSError as fault:
            raise AxonnxError(
                f"{address}: no Dask scheduler answers ({fault}); start one with: dask scheduler"
            ) from None
        with client:
            _refuse_other_versions(client, address)
            yield client


@contextmanager
def _scheduler(address: str) -> Iterator[Any]:
    """Yield the address as it is, or a cluster that a batch system runs until the block ends."""
    kind, _, place = address.partition(":")
    if kind not in BATCH_SYSTEMS:
        yield address
        return
    try:
        import dask_jobqueue
    except ModuleNotFoundError:
        raise AxonnxError(f"{address}: needs dask-jobqueue: pip install 'axonnx[cluster]'") from None
    profile = _profile(Path(place))
    workers = profile.pop("workers", 1)
    if shutil.which(SUBMIT[kind]) is None:
        raise AxonnxError(
            f"{address}: the program {SUBMIT[kind]} is not on this machine, so no jobs can be submitted to {kind}. Run "
            f"this on a login node, or name a Dask scheduler that runs: tcp://HOST:PORT"
        )
    try:
        made = getattr(dask_jobqueue, BATCH_SYSTEMS[kind])(**profile)
    except (TypeError, ValueError) as fault:  # an unknown or missing argument
        raise AxonnxError(f"{place}: {fault}. Correct the profile") from None
    with made as cluster:
        cluster.scale(workers)
        yield cluster


def _profile(path: Path) -> dict[str, Any]:
    """Read the arguments of the cluster's class, and ``workers``, the number of workers."""
    import yaml

    try:
        tree = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as fault:
        raise AxonnxError(f"{path}: cannot be read as YAML: {fault}") from None
    if not isinstance(tree, dict):
        raise AxonnxError(f"{path}: expected names and values, as in 'queue: short', 'cores: 1', 'workers: 10'")
    return tree


def _refuse_other_versions(client: Any, address: str) -> None:
    """Refuse workers with another version before the work begins, because their bits may differ."""
    here = _version()
    others = {worker: found for worker, found in client.run(_version).items() if found != here}
    if others:
        worker, found = next(iter(others.items()))
        raise AxonnxError(
            f"{address}: the worker {worker} has axonnx {found}, but this machine has {here}; install the same version "
            f"on all"
        )


def _version() -> str:
    try:
        return metadata.version("axonnx")
    except metadata.PackageNotFoundError:
        return "not installed"
