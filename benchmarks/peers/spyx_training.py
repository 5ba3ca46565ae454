"""The recurrent network of Spyx's layers to be trained: value and gradient compiled by XLA, in two forms."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp
import optax
import spyx.nn as snn
from flax import nnx
from torch import Tensor

from axonnx.models.neurons import DEFAULT_DECAY

Array = Any


class LayerWise(nnx.Module):
    """Input products of all steps at once, then a scan of a layer's neurons."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        rngs = nnx.Rngs(0)
        self.first, self.second = nnx.Linear(inputs, hidden, rngs=rngs), nnx.Linear(hidden, hidden, rngs=rngs)
        self.neurons1 = snn.RLIF((hidden,), beta=DEFAULT_DECAY, rngs=rngs)
        self.neurons2 = snn.RLIF((hidden,), beta=DEFAULT_DECAY, rngs=rngs)
        self.last, self.leaky = (
            nnx.Linear(hidden, classes, rngs=rngs),
            snn.LI((classes,), beta=DEFAULT_DECAY, rngs=rngs),
        )

    def __call__(self, x: Array) -> Array:
        x = snn.run(self.neurons1, self.first(x))[0]
        x = snn.run(self.neurons2, self.second(x))[0]
        return snn.run(self.leaky, self.last(x))[0].mean(0)


class OneScan(LayerWise):
    """All layers in one scan, as Spyx's Sequential has them."""

    def __call__(self, x: Array) -> Array:
        model = snn.Sequential(self.first, self.neurons1, self.second, self.neurons2, self.last, self.leaky)
        return snn.run(model, x)[0].mean(0)


def steps(inputs: int, hidden: int, classes: int) -> dict[str, Callable[[Tensor, Tensor], None]]:
    """A training step of each form."""
    forms = {"Spyx, jit, layer by layer": LayerWise, "Spyx, jit, one scan": OneScan}
    return {name: _step(form(inputs, hidden, classes)) for name, form in forms.items()}


def _step(network: LayerWise) -> Callable[[Tensor, Tensor], None]:
    form, parameters = nnx.split(network)

    def loss(parameters: Any, x: Array, labels: Array) -> Array:
        logits = nnx.merge(form, parameters)(x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    gradient = jax.jit(jax.value_and_grad(loss))

    def step(x: Tensor, labels: Tensor) -> None:
        jax.block_until_ready(gradient(parameters, jnp.asarray(x.numpy()), jnp.asarray(labels.numpy())))

    return step
