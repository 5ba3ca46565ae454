"""The result of profiling as JSON: ``axonnx profile`` writes it, the report reads it. Figures are per inference."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from axonnx.runtime.measure.energy import EnergyParts, Hardware, Width
from axonnx.runtime.measure.metrics import ValueMetrics
from axonnx.runtime.measure.result_files import Found


class LayerCost(Found):
    """Activity of one layer of neurons."""

    name: str
    neurons: PositiveInt
    rate: NonNegativeFloat
    spikes_per_inference: NonNegativeFloat
    rate_over_time: tuple[float, ...]


class SynapseCost(Found):
    """Operations and traffic of one synapse. A weight of zero is read like others, but it is no operation.

    Attributes:
        inputs: Size of its input.
        active_inputs: Inputs that are not zero, over all steps.
        input_bits: Width of an active input: its address, and its value unless it is a spike.
        follows_spikes: Whether the network's own spikes reach it. Otherwise the network's input alone does.
    """

    name: str
    weights: PositiveInt
    stored_as: Width
    connection_sparsity: NonNegativeFloat
    accumulates: NonNegativeFloat
    multiply_accumulates: NonNegativeFloat
    dense_operations: NonNegativeInt
    weights_read: NonNegativeFloat
    inputs: PositiveInt
    active_inputs: NonNegativeFloat
    input_bits: PositiveInt
    follows_spikes: bool

    @property
    def operations(self) -> float:
        """Number of operations of both kinds."""
        return self.accumulates + self.multiply_accumulates


class Totals(Found):
    """Sums over the network."""

    events_in: NonNegativeFloat
    active_inputs: NonNegativeFloat
    accumulates: NonNegativeFloat
    multiply_accumulates: NonNegativeFloat
    dense_operations: NonNegativeInt
    membrane_updates: NonNegativeInt
    footprint_bytes: NonNegativeInt
    state_bytes: NonNegativeInt
    biases: NonNegativeInt
    activation_sparsity: float
    connection_sparsity: NonNegativeFloat


class DenseEnergy(Found):
    """The estimate for a dense network of the same shape and weight width, which has no spikes and no membranes.

    Attributes:
        passes: Number of times that it computes all layers for one inference.
        activation_bits: Width of its activations.
        parts: Its energy; ``spikes`` are its activations.
        break_even_rate: Firing rate at which the spiking network needs as much. 0: it needs more even if it is silent;
            None: the rate cannot be computed, because nothing fired or the network does not spike.
    """

    passes: PositiveInt
    activation_bits: PositiveInt
    parts: EnergyParts
    break_even_rate: NonNegativeFloat | None


class Energy(Found):
    """An energy estimate with its assumptions, and the estimates of dense networks."""

    hardware: Hardware
    memory_pj_per_byte: NonNegativeFloat
    parts: EnergyParts
    total_nj: NonNegativeFloat
    rate: NonNegativeFloat
    dense: tuple[DenseEnergy, ...]

    def verdict(self, dense: DenseEnergy) -> str:
        """Return whether this network needs fewer joules than a dense one, and from which firing rate on."""
        answer = "yes" if self.total_nj < dense.parts.total else "no"
        limit = dense.break_even_rate
        if limit is None:
            return answer
        if limit >= 1:
            return f"{answer}, at any firing rate"
        here = f"here {100 * self.rate:.3g} %"
        return (
            f"{answer}, at no firing rate" if limit == 0 else f"{answer}, below a rate of {100 * limit:.2g} % ({here})"
        )


class EarlyExit(Found):
    """Accuracy and mean decision time if a window ends when the highest probability reaches ``stop_at``."""

    stop_at: float
    accuracy: float
    mean_steps: float


class ProfileResult(Found):
    """The contents of profile.json."""

    format: Literal[2] = 2
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
    accuracy: float = Field(math.nan, description="NaN of a regression, which has errors instead")
    accuracy_interval: tuple[float, float] = (math.nan, math.nan)
    ece: float = math.nan
    values: tuple[str, ...] = Field(default=(), description="names of the real values of a regression")
    units: tuple[str, ...] = ()
    errors: ValueMetrics | None = Field(default=None, description="of a regression")
    early_exit: tuple[EarlyExit, ...] = ()

    @property
    def spikes_per_inference(self) -> float:
        """Number of spikes of all layers."""
        return sum(layer.spikes_per_inference for layer in self.layers)
