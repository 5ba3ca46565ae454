"""The hand-written pass over a sequence against its specification, the step-by-step graph."""

import pytest
import torch
from torch import Tensor

from axonnx.models import LIF, MEAN_FIELD, Current, LIFSettings, LIFState, Replay, Run, State, Variant, divergence_sum
from axonnx.models.maths.estimators import make_estimator
from axonnx.models.neurons import Neurons

STEPS, BATCH, NEURONS = 7, 3, 4
ESTIMATORS = {
    "st": make_estimator("st"),
    "iwst": make_estimator("iwst"),
    "agr": make_estimator("agr"),
    "gs_st": make_estimator("gs_st"),
    "gs": make_estimator("gs", k=0.3),
    "sg": make_estimator("sg"),
}


def layer(
    recurrent: bool, granularity: str = "layer", estimator: str = "st", dtype: torch.dtype = torch.float64
) -> LIF:
    torch.manual_seed(2)
    variant = Variant(granularity=granularity, estimator=ESTIMATORS[estimator])
    settings = LIFSettings(decay=0.8, learn_decay=True, base_std=0.3, learn_threshold=True)
    return LIF(variant, settings, recurrent=NEURONS if recurrent else None).to(dtype)


def inputs(factored: bool, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """A current with its variance as a product or whole, and an initial state, all asking for gradients."""
    torch.manual_seed(3)
    drawn = {
        "mean": 0.5 + torch.randn(STEPS, BATCH, NEURONS, dtype=dtype),
        "activity": 0.1 + torch.rand(STEPS, BATCH, 1 if factored else NEURONS, dtype=dtype),
        "membrane": torch.randn(BATCH, NEURONS, dtype=dtype),
        "variance": 0.1 + torch.rand(BATCH, NEURONS, dtype=dtype),
        "spikes": (torch.rand(BATCH, NEURONS) < 0.5).to(dtype),
    }
    if factored:
        drawn["gain"] = 0.1 + torch.rand(NEURONS, dtype=dtype)
    return {name: value.requires_grad_() for name, value in drawn.items()}


def run_layer(lif: LIF, given: dict[str, Tensor], path: str, sampled: bool) -> tuple[Tensor | None, ...]:
    """Observations and final state by ``path``, the fused or the plain one."""
    torch.manual_seed(4)
    fire = Replay({"": torch.randn_like(given["mean"])}) if sampled else MEAN_FIELD
    state = LIFState(given["membrane"], given["variance"], given["spikes"])
    run = Run(lif, fire, State(0, {"": state}), sequence=True)
    current = Current(given["mean"], given["activity"], given.get("gain"))
    noise = run.noise(lif, current.mean)
    (LIF if path == "fused" else Neurons)._through_time(lif, current, state, noise, None, run)
    seen = run.observations[""]
    return (seen.gap, seen.variance, seen.spikes, *run.after[""])


def gradients(lif: LIF, given: dict[str, Tensor], path: str, sampled: bool, only: str) -> dict[str, Tensor | None]:
    """Of a loss that reads everything a pass gives, or a part of it."""
    gap, variance, spikes, membrane, remembered, last = run_layer(lif, given, path, sampled)
    torch.manual_seed(5)
    weighted = [(torch.randn_like(x) * x).sum() for x in (spikes, membrane, remembered, last)]
    loss = {
        "everything": weighted[0] + weighted[1] + weighted[2] + weighted[3] + divergence_sum(gap, variance, "log"),
        "spikes": weighted[0],
        "kl": divergence_sum(gap, variance, "log"),
        "state": weighted[1] + weighted[2] + weighted[3],
    }[only]
    named = {**given, **dict(lif.named_parameters())}
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return dict(zip(named, found, strict=True))


def assert_same_gradients(lif: LIF, given: dict[str, Tensor], sampled: bool, only: str = "everything") -> None:
    fused, plain = (gradients(lif, given, path, sampled, only) for path in ("fused", "plain"))
    assert any(gradient is not None and gradient.abs().max() > 1e-6 for gradient in plain.values())
    for name, value in {**given, **dict(lif.named_parameters())}.items():
        found, expected = (torch.zeros_like(value) if grads[name] is None else grads[name] for grads in (fused, plain))
        torch.testing.assert_close(
            found, expected, rtol=1e-9, atol=1e-12, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.mark.parametrize("sampled", [False, True], ids=["mean-field", "sample"])
@pytest.mark.parametrize("factored", [False, True], ids=["whole", "factored"])
@pytest.mark.parametrize("granularity", ["layer", "neuron", "weight"])
@pytest.mark.parametrize("recurrent", [False, True], ids=["feed-forward", "recurrent"])
def test_forward_is_the_same_bit_for_bit(recurrent, granularity, factored, sampled):
    """Recurrent weights are on a grid, where sums of a matrix library are exact in any order, as ours are."""
    lif, given = layer(recurrent, granularity, dtype=torch.float32), inputs(factored, torch.float32)
    if lif.recurrent is not None:
        with torch.no_grad():
            lif.recurrent.posterior.raw_mean.mul_(256).round_().div_(256)
    results = (run_layer(lif, given, path, sampled) for path in ("fused", "plain"))
    for fused, plain in zip(*results, strict=True):
        assert torch.equal(fused, plain)


@pytest.mark.parametrize("sampled", [False, True], ids=["mean-field", "sample"])
@pytest.mark.parametrize("factored", [False, True], ids=["whole", "factored"])
@pytest.mark.parametrize("granularity", ["layer", "neuron", "weight"])
@pytest.mark.parametrize("recurrent", [False, True], ids=["feed-forward", "recurrent"])
def test_gradients_are_the_same(recurrent, granularity, factored, sampled):
    """Of currents, initial state, decay, base noise and recurrent posterior, in float64 to 1e-9."""
    assert_same_gradients(layer(recurrent, granularity), inputs(factored), sampled)


@pytest.mark.parametrize("only", ["spikes", "kl", "state"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("recurrent", [False, True], ids=["feed-forward", "recurrent"])
def test_gradients_of_parts_are_the_same_with_every_estimator(recurrent, estimator, only):
    """A loss that reads one output only leaves the others without an incoming gradient."""
    assert_same_gradients(layer(recurrent, "layer", estimator), inputs(factored=True), sampled=True, only=only)


def test_long_sequences_take_their_slopes_in_blocks(monkeypatch):
    """Slopes are computed for a few steps at a time: the result does not depend on how many."""
    lif, given = layer(recurrent=True), inputs(factored=True)
    whole = gradients(lif, given, "fused", True, "everything")
    for block in (1, 3 * BATCH * NEURONS):
        monkeypatch.setattr("axonnx.models.fast.lif_torch._BLOCK", block)
        for name, gradient in gradients(lif, given, "fused", True, "everything").items():
            assert torch.equal(gradient, whole[name]), name
