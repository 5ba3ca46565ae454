"""Estimate the energy of one inference, beside dense networks of the same shape and weight width."""

from __future__ import annotations

import math
from collections.abc import Sequence

from axonnx.runtime.measure.energy import WIDTHS, EnergyParts, Hardware
from axonnx.runtime.measure.profile_result import DenseEnergy, Energy, LayerCost, SynapseCost, Totals

NJ = 1e-3  # of a pJ
BIAS_BYTES = 4  # float32 in every file


def address_bits(size: int) -> int:
    """Return the width of the address of one of ``size`` elements."""
    return max(1, math.ceil(math.log2(size)))


def estimate(
    hardware: Hardware, totals: Totals, layers: Sequence[LayerCost], synapses: Sequence[SynapseCost], steps: int
) -> Energy:
    """Return the energy of one inference of ``steps`` time steps.

    The first dense network computes every time step. The second one computes a single pass with activations of
    ⌈log2(steps + 1)⌉ bits, which hold as much as the number of spikes of a neuron (arXiv 2409.08290).
    """
    byte = hardware.byte(totals.footprint_bytes + totals.state_bytes)
    always = EnergyParts(
        membrane_updates=NJ * hardware.membrane_update_pj * totals.membrane_updates,
        weights=NJ * byte * BIAS_BYTES * totals.biases * steps,
        states=NJ * byte * 2 * totals.state_bytes * steps,  # read and written
    )
    by_spikes = EnergyParts(
        spikes=NJ * byte * sum(each.spikes_per_inference * address_bits(each.neurons) / 8 for each in layers)
    )
    for synapse in synapses:
        if synapse.follows_spikes:
            by_spikes += _synapse(hardware, byte, synapse)
        else:
            always += _synapse(hardware, byte, synapse)
    parts, rate = always + by_spikes, 1 - totals.activation_sparsity

    def dense(passes: int, bits: int) -> DenseEnergy:
        costs = [_dense(hardware, byte, synapse, passes, bits, steps) for synapse in synapses]
        written = EnergyParts(spikes=NJ * byte * passes * bits / 8 * sum(each.neurons for each in layers))
        found = sum(costs, written)
        known = totals.membrane_updates > 0 and by_spikes.total > 0
        limit = max(found.total - always.total, 0.0) / by_spikes.total * rate if known else None
        return DenseEnergy(passes=passes, activation_bits=bits, parts=found, break_even_rate=limit)

    widest = 8 * max(WIDTHS[synapse.stored_as] for synapse in synapses)
    networks = [dense(steps, widest)]
    if steps > 1:
        networks.append(dense(1, math.ceil(math.log2(steps + 1))))
    return Energy(
        hardware=hardware,
        memory_pj_per_byte=byte,
        parts=parts,
        total_nj=parts.total,
        rate=rate,
        dense=tuple(networks),
    )


def _synapse(hardware: Hardware, byte: float, synapse: SynapseCost) -> EnergyParts:
    width = synapse.stored_as
    return EnergyParts(
        accumulates=NJ * hardware.accumulate(width) * synapse.accumulates,
        multiply_accumulates=NJ * hardware.multiply_accumulate(width) * synapse.multiply_accumulates,
        weights=NJ * byte * WIDTHS[width] * synapse.weights_read,
        spikes=NJ * byte * synapse.active_inputs * synapse.input_bits / 8,
    )


def _dense(hardware: Hardware, byte: float, synapse: SynapseCost, passes: int, bits: int, steps: int) -> EnergyParts:
    """Every input meets every weight; a pass reads each weight and each activation once."""
    width = synapse.stored_as
    operations = synapse.dense_operations // steps * passes
    return EnergyParts(
        multiply_accumulates=NJ * hardware.multiply_accumulate(width) * operations,
        weights=NJ * byte * WIDTHS[width] * synapse.weights * passes,
        spikes=NJ * byte * synapse.inputs * bits / 8 * passes,
    )
