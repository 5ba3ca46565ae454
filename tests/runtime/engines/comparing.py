"""A comparison that counts: how many numbers were compared, and how many differ, without a tolerance."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.result import RunResult


@dataclass
class Comparison:
    """Filled by ``add``, held to zero differences by ``hold``."""

    compared: dict[str, int] = field(default_factory=lambda: {"spikes": 0, "membrane": 0, "logits": 0})
    differing: dict[str, int] = field(default_factory=lambda: {"spikes": 0, "membrane": 0, "logits": 0})
    fired: int = 0

    def add(self, expected: Mapping[str, NDArray], found: Mapping[str, NDArray]) -> None:
        for name, value in expected.items():
            kind, other = name.split("/")[0], found[name]
            assert value.shape == other.shape, name
            assert value.dtype == other.dtype == np.float32, name
            self.compared[kind] += value.size
            self.differing[kind] += int((value != other).sum())  # NaN differs from everything
            self.fired += int(value.sum()) if kind == "spikes" else 0

    def hold(self, spiking: bool = True) -> None:
        kinds = ("spikes", "membrane", "logits") if spiking else ("spikes", "logits")
        assert all(self.compared[kind] > 0 for kind in kinds), self.compared
        assert set(self.differing.values()) == {0}, f"{self.differing} of {self.compared} differ"
        assert self.fired > 0


def as_values(result: RunResult, spiking: bool = True) -> dict[str, NDArray]:
    """A run's results under the names that a torch network's have."""
    traces = result.traces if spiking else {name: trace[0] for name, trace in result.traces.items()}
    return {**traces, "logits": result.member_logits}
