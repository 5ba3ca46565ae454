"""The same recurrent network in Spyx (JAX, compiled by XLA): all layers in one scan, or layer after layer.

Its RLIF has our equation, h[t] = β·h[t−1] + I[t] + R·o[t−1] − θ·o[t−1], but gives the spikes of the step before. Layer
after layer, one more step brings the last spikes out. In one scan every layer hears the one before it a step late, and
its bias once too often for each: membranes begin where that leads to zero.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import spyx.nn as snn
import torch
from flax import nnx
from torch import Tensor

from axonnx.export.collapsed import Collapsed

Array = Any


class Network:
    """Layer after layer: input products of all steps at once, then a scan of the neurons."""

    def __init__(self, collapsed: Collapsed) -> None:
        network: Any = collapsed.network
        self.layers = [(_linear(layer.synapse), _neurons(layer.neuron)) for layer in network.hidden]
        self.readout, self.leaky = _linear(network.readout), _leaky(network.readout)
        self._logits, self._spikes = jax.jit(self.run), jax.jit(self.hidden)

    def eval(self) -> Network:
        return self

    def __call__(self, x: Tensor) -> Tensor:
        """Logits from [T, B, inputs]."""
        return torch.from_numpy(np.array(self._logits(jnp.asarray(x.numpy()))))

    def spikes(self, x: Tensor) -> list[Tensor]:
        """Of each hidden layer [T, B, neurons]."""
        return [torch.from_numpy(np.array(layer)) for layer in self._spikes(jnp.asarray(x.numpy()))]

    def hidden(self, x: Array) -> list[Array]:
        found = []
        for linear, neurons in self.layers:
            current = jnp.pad(linear(x), ((0, 1), (0, 0), (0, 0)))
            x = snn.run(neurons, current)[0][1:]
            found.append(x)
        return found

    def run(self, x: Array) -> Array:
        return snn.run(self.leaky, self.readout(self.hidden(x)[-1]))[0].mean(0)


class OneScan(Network):
    """All layers in one scan, as Spyx's own Sequential has them."""

    def __init__(self, collapsed: Collapsed) -> None:
        super().__init__(collapsed)
        parts = [part for layer in self.layers for part in layer]
        self.model = snn.Sequential(*parts, self.readout, self.leaky)

    def run(self, x: Array) -> Array:
        late = len(self.layers)
        outputs = snn.run(self.model, jnp.pad(x, ((0, late), (0, 0), (0, 0))), self._begin(x.shape[1]))[0]
        return outputs[late:].mean(0)

    def _begin(self, batch: int) -> list[Array | None]:
        """Membranes h with h → 0 after as many steps of bias alone as the layer is late."""
        state: list[Array | None] = []
        for late, (linear, neurons) in enumerate([*self.layers, (self.readout, self.leaky)]):
            beta, bias = neurons.beta[...], linear.bias[...]
            before = -sum((bias / beta ** (k + 1) for k in range(late)), start=jnp.zeros_like(bias))
            state += [None, jnp.broadcast_to(before, (batch, len(bias)))]
        return state


def _linear(synapse: Any) -> nnx.Linear:
    made = nnx.Linear(synapse.weight.shape[1], synapse.weight.shape[0], rngs=nnx.Rngs(0))
    made.kernel[...] = jnp.asarray(synapse.weight.numpy().T)
    made.bias[...] = jnp.asarray(synapse.bias.numpy())
    return made


def _neurons(neuron: Any) -> snn.RLIF:
    weight = neuron.recurrent_weight.numpy()
    threshold = float(neuron.threshold.max())
    made = snn.RLIF((len(weight),), beta=float(neuron.decay), threshold=threshold, rngs=nnx.Rngs(0))
    made.recurrent_w[...] = jnp.asarray(weight.T)
    return made


def _leaky(readout: Any) -> snn.LI:
    return snn.LI((len(readout.bias),), beta=float(readout.decay), rngs=nnx.Rngs(0))


FORMS = {"Spyx, jit, layer by layer": Network, "Spyx, jit, one scan": OneScan}
