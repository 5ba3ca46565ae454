"""What synapses and neurons of every kind become in a collapsed network: constant weights, and operators."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.export.collapse import ops
from axonnx.models.maths.current import Current, needs_current
from axonnx.models.run import Observation, Run, layer_state, stack_observations
from axonnx.models.synapses import Side
from axonnx.runtime.format.opset import OPS


class ConstantSynapse(nn.Module):
    """W·x + b with constant weights; and the variance it causes, where the network stays stochastic.

    ``gain`` [channels] stands for a² σ², ``spread`` for the squares of single weights' σ. ``step_scale`` and
    ``step_bias`` [steps, channels] are scale and bias of each time step, or what batch norm through time amounts to;
    ``step_gain`` their squared scale, which variances take.
    """

    weight: Tensor
    bias: Tensor | None
    gain: Tensor | None
    spread: Tensor | None
    ones: Tensor
    step_scale: Tensor | None
    step_bias: Tensor | None
    step_gain: Tensor | None

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        *,
        stride: Side = 1,
        padding: Side = 0,
        dilation: Side = 1,
        groups: int = 1,
        gain: Tensor | None = None,
        spread: Tensor | None = None,
        per_step: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.register_buffer("weight", weight)
        self.register_buffer("bias", bias)
        self.register_buffer("gain", gain)
        self.register_buffer("spread", spread)
        self.register_buffer("ones", None if gain is None else torch.ones_like(weight[:1]))
        self.register_buffer("step_scale", None if per_step is None else per_step[0])
        self.register_buffer("step_bias", None if per_step is None else per_step[1])
        noisy = per_step is not None and (gain is not None or spread is not None)
        self.register_buffer("step_gain", per_step[0] * per_step[0] if noisy and per_step is not None else None)

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Apply the linear map to the last axis or the last three."""
        if weight.dim() == 2:
            return nnf.linear(x, weight, bias)
        flat = x.flatten(0, -4) if x.dim() > 4 else x
        out = nnf.conv2d(flat, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        return out.unflatten(0, x.shape[:-3]) if x.dim() > 4 else out

    def forward(self, x: Tensor, run: Run) -> Current:
        """Return the current that ``x`` causes."""
        mean = self.product(x, self.weight, self.bias)
        if self.step_scale is not None and self.step_bias is not None:
            mean = mean * self._rows(self.step_scale, mean, run) + self._rows(self.step_bias, mean, run)
        if self.gain is not None:
            return self._per_step(Current(mean, self._activity(x * x) * self.gain), run)
        return self._per_step(Current(mean, None if self.spread is None else self.product(x * x, self.spread)), run)

    def _per_step(self, current: Current, run: Run) -> Current:
        """Return the current with the variance of this time step's scale."""
        variance = current.variance
        if self.step_gain is None or variance is None:
            return current
        return Current(current.mean, variance * self._rows(self.step_gain, current.mean, run))

    def split_activity(self, largest_share: int) -> None:
        """Sum up Σ x² over shares of at most so many inputs, each of them exact, and then the shares in order."""
        inputs = torch.arange(self.weight[0].numel())
        shares = inputs.split(largest_share)
        rows = [torch.isin(inputs, share).float().reshape(self.weight[0].shape) for share in shares]
        self.ones = torch.stack(rows)

    def _activity(self, squares: Tensor) -> Tensor:
        shares = self.product(squares, self.ones)
        if len(self.ones) == 1:
            return shares
        flat = self.weight.dim() == 2
        each = [slice(number, number + 1) for number in range(len(self.ones))]
        total, *rest = [shares[..., share] if flat else shares[..., share, :, :] for share in each]
        for share in rest:
            total = total + share
        return total

    def _rows(self, table: Tensor, like: Tensor, run: Run) -> Tensor:
        """Return the rows of this pass's time steps, to broadcast over [(T,) B, C, …]."""
        spatial = self.weight.dim() - 2
        if run.clock is not None:
            row = torch.index_select(table, 0, run.clock)
            return row.unflatten(1, (table.shape[1], *(1,) * spatial)) if spatial else row
        length = like.shape[0] if run.sequence else 1
        if run.step + length > table.shape[0]:
            raise AxonnxError(
                f"scales of time steps are known for {table.shape[0]} steps; this pass reaches {run.step + length}"
            )
        rows = table[run.step : run.step + length].reshape(length, 1, table.shape[1], *(1,) * spatial)
        return rows if run.sequence else rows[0]


class OperatorNeurons(nn.Module):
    """A layer of neurons with constants: its operators, each on what the one before it gave; the last one fires.

    ``recurrent_gain`` and ``recurrent_spread`` are for recurrent weights what ``gain`` and ``spread`` are for others.
    """

    threshold: Tensor
    recurrent_weight: Tensor | None
    recurrent_gain: Tensor | None
    recurrent_spread: Tensor | None

    def __init__(
        self,
        operators: Sequence[str],
        constants: Mapping[str, Tensor],
        recurrent_weight: Tensor | None = None,
        recurrent_gain: Tensor | None = None,
        recurrent_spread: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.operators, self.op = tuple(operators), operators[-1]
        *before, last = [OPS[name] for name in operators]
        self.stochastic = "noise" in last.operands
        for name in (name for op in (*before, last) for name in op.parameters):
            self.register_buffer(name, constants[name].detach().clone())
        self.register_buffer("recurrent_weight", recurrent_weight)
        self.register_buffer("recurrent_gain", recurrent_gain)
        self.register_buffer("recurrent_spread", recurrent_spread)
        # Files of version 1 have the state of a synaptic current behind the spikes, before other states.
        first = last.states.index("spikes") + 1 if last.states else 0
        self.states = (*last.states[:first], *(name for op in before for name in op.states), *last.states[first:])

    def forward(self, current: Current, run: Run) -> Tensor:
        """Spikes of the shape of the current; state goes through ``run``."""
        current = needs_current(current, run.name(self))
        noise = _needed(run.noise(self, current.mean), run.name(self)) if self.stochastic else None
        noises = noise if run.sequence and noise is not None else itertools.repeat(noise)
        state, seen = self._state(current.mean[0] if run.sequence else current.mean, run), []
        for arriving, drawn in zip(self._moments(current, run), noises, strict=False):
            state, observed = self._step(arriving, drawn, state)
            seen.append(observed)
        if self.states:
            run.keep(self, layer_state(state))
        run.observe(self, stack_observations(seen) if run.sequence else seen[0])
        return run.observations[run.name(self)].spikes

    def _state(self, like: Tensor, run: Run) -> dict[str, Tensor]:
        state = run.state_of(self)
        return dict.fromkeys(self.states, torch.zeros_like(like)) if state is None else state._asdict()

    def _moments(self, current: Current, run: Run) -> Sequence[Current]:
        """Return the current of each time step, with its variance if that is needed."""
        if not run.sequence:
            return (current,)
        variance = current.variance if self.stochastic else None
        return [Current(mean, None if variance is None else variance[t]) for t, mean in enumerate(current.mean)]

    def _step(
        self, current: Current, noise: Tensor | None, state: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], Observation]:
        arriving = current.mean
        if self.recurrent_weight is not None:
            arriving = arriving + nnf.linear(state["spikes"], self.recurrent_weight)
        values: dict[str, Any] = {**state, "current": arriving, "noise": noise}
        if self.stochastic:
            values["arriving_variance" if self.states else "variance"] = self._arriving(_variance(current), state)
        for op in (OPS[name] for name in self.operators):
            constants = (getattr(self, name) for name in op.parameters)
            found = ops.OPERATORS[op.name](*(values[name] for name in op.operands), *constants)
            found = found if isinstance(found, tuple) else (found,)
            values |= zip(op.outputs, found, strict=True)
            if op.name != self.op:
                values["current"] = found[0]
        after = {name: values[f"next_{name}"] for name in self.states}
        membrane, variance, spikes = (values.get(name or "") for name in (op.membrane, op.variance, op.spikes))
        assert membrane is not None, f"{op.name} does not fire"
        assert spikes is not None
        return after, Observation(membrane, variance, spikes)

    def _arriving(self, variance: Tensor, state: Mapping[str, Tensor]) -> Tensor:
        """Return the variance of all that arrives, from the layer itself too."""
        if self.recurrent_gain is not None:
            activity: Tensor = ops.OPERATORS["RecurrentActivity"](state["spikes"])
            return variance + self.recurrent_gain * activity
        if self.recurrent_spread is not None:
            return variance + nnf.linear(state["spikes"] * state["spikes"], self.recurrent_spread)
        return variance


def _needed(noise: Tensor | None, name: str) -> Tensor:
    if noise is None:
        raise AxonnxError(f"layer {name!r} is stochastic and needs noise: run the network with Sample or Replay")
    return noise


def _variance(current: Current) -> Tensor:
    variance = current.variance
    if variance is None:
        raise AxonnxError("a stochastic neuron got a current without a variance; collapse with another mode")
    return variance
