"""What is kept beside a golden file: input, seed, logits, hashes of all traces and states, and counts of activity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.result import RunResult

PER_SAMPLE = ("traces", "states", "spikes", "operations")


@dataclass(frozen=True)
class Record:
    """One run of a file. Every array of the mappings has a row for each sample, so that samples can be run alone."""

    x: NDArray[np.float32]
    seed: NDArray[np.int64]
    logits: NDArray[np.float32]  # [members, B, classes]
    traces: Mapping[str, NDArray[np.uint8]]  # spikes/<layer>, membrane/<layer>: a sha256 [B, 32]
    states: Mapping[str, NDArray[np.uint8]]  # after the last step: a sha256 [B, 32]
    spikes: Mapping[str, NDArray[np.int64]]  # of each layer [B]
    operations: Mapping[str, NDArray[np.int64]]  # of each synapse [B]

    def write(self, path: Path) -> None:
        """Write the record as an npz file; mappings become an array of names and one of values."""
        arrays = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in PER_SAMPLE:
                arrays[field.name] = value
            elif value:
                arrays[f"{field.name}_names"] = np.array(list(value))
                arrays[field.name] = np.stack(list(value.values()))
        np.savez_compressed(path, **arrays)


def read_record(path: Path) -> Record:
    """Read what ``Record.write`` wrote."""
    with np.load(path) as kept:
        plain = {name: kept[name] for name in ("x", "seed", "logits")}
        mappings = {
            name: dict(zip(kept[f"{name}_names"].tolist(), kept[name], strict=True)) if name in kept else {}
            for name in PER_SAMPLE
        }
    return Record(**plain, **mappings)


def make_record(x: NDArray[np.float32], seed: int, result: RunResult) -> Record:
    """The record of a run with traces, on an engine that counts."""
    assert result.activity is not None
    return Record(
        x,
        np.array(seed),
        result.member_logits,
        trace_hashes(result.traces),
        state_hashes(result.state.arrays),
        dict(result.activity.spikes),
        dict(result.activity.operations),
    )


def trace_hashes(traces: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.uint8]]:
    """A hash for each sample of traces [T, B, …]."""
    return {name: np.stack([digest(sample) for sample in np.moveaxis(trace, 1, 0)]) for name, trace in traces.items()}


def state_hashes(arrays: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.uint8]]:
    """A hash for each sample of states [B, …]."""
    return {name: np.stack([digest(sample) for sample in array]) for name, array in arrays.items()}


def digest(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """The sha256 of float32 numbers.

    Zeros lose their sign first: −0 and 0 are equal, no neuron tells them apart, and engines may give either.
    """
    assert values.dtype == np.float32
    data = np.ascontiguousarray(values + np.float32(0.0), "<f4").tobytes()
    return np.frombuffer(sha256(data).digest(), np.uint8)


def differences(kept: Record, result: RunResult, samples: slice = slice(None)) -> list[str]:
    """Everything in which a run of some of the samples differs from what was kept, by name."""
    found = [] if _same(kept.logits[:, samples], result.member_logits) else ["logits"]
    pairs = [(kept.traces, trace_hashes(result.traces)), (kept.states, state_hashes(result.state.arrays))]
    if result.activity is not None:
        pairs += [(kept.spikes, result.activity.spikes), (kept.operations, result.activity.operations)]
    for kind, (expected, given) in zip(PER_SAMPLE, pairs, strict=False):
        names = [name for name in expected if name not in given or not _same(expected[name][samples], given[name])]
        found += [f"{kind} {name}" for name in names] + [f"{kind} {name} is new" for name in given.keys() - expected]
    return found


def _same(a: NDArray, b: NDArray) -> bool:
    return a.dtype == b.dtype and np.array_equal(a, b)
