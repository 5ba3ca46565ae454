"""The result of profiling as JSON: ``axonnx profile`` writes it, the report reads it. Figures are per inference."""

from __future__ import annotations

from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveInt

from axonnx.runtime.measure.energy import EnergyParts, Hardware
from axonnx.runtime.measure.result_files import Found


class LayerCost(Found):
    """Activity of one layer of neurons."""

    name: str
    neurons: PositiveInt
    rate: NonNegativeFloat
    spikes_per_inference: NonNegativeFloat
    rate_over_time: tuple[float, ...]


class SynapseCost(Found):
    """Operations of one synapse."""

    name: str
    weights: PositiveInt
    connection_sparsity: NonNegativeFloat
    accumulates: NonNegativeFloat
    multiply_accumulates: NonNegativeFloat
    dense_operations: NonNegativeInt

    @property
    def operations(self) -> float:
        """Number of operations of both kinds."""
        return self.accumulates + self.multiply_accumulates


class Totals(Found):
    """Sums over the network."""

    events_in: NonNegativeFloat
    accumulates: NonNegativeFloat
    multiply_accumulates: NonNegativeFloat
    dense_operations: NonNegativeInt
    membrane_updates: NonNegativeInt
    footprint_bytes: NonNegativeInt
    activation_sparsity: float
    connection_sparsity: NonNegativeFloat


class Energy(Found):
    """An energy estimate with its assumptions, and the estimate of a dense network of the same shape."""

    hardware: Hardware
    parts: EnergyParts
    total_nj: NonNegativeFloat
    dense_nj: NonNegativeFloat


class EarlyExit(Found):
    """Accuracy and mean decision time if a window ends when the highest probability reaches ``stop_at``."""

    stop_at: float
    accuracy: float
    mean_steps: float


class ProfileResult(Found):
    """The contents of profile.json."""

    format: Literal[1] = 1
    model: str
    file_sha256: str | None = None
    checkpoint_sha256: str | None = None
    data_sha256: str | None = None
    samples: PositiveInt
    engine: str
    collapse: Literal["mfa", "sampled", "stochastic"]
    layers: tuple[LayerCost, ...]
    synapses: tuple[SynapseCost, ...]
    totals: Totals
    energy: Energy
    latency_ms_per_step: NonNegativeFloat
    accuracy: float
    accuracy_interval: tuple[float, float]
    ece: float
    early_exit: tuple[EarlyExit, ...] = ()

    @property
    def spikes_per_inference(self) -> float:
        """Number of spikes of all layers."""
        return sum(layer.spikes_per_inference for layer in self.layers)
