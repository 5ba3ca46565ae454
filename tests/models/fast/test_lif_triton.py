"""Triton kernels, run by Triton's interpreter on a CPU, against the same in torch and in the native core.

Interpreted, a kernel's operations are numpy's, one by one: what is proved is that they are the right ones in the right
order. What a GPU's compiler makes of them is not run here; ``test_triton_compiled.py`` looks at its registers.
"""

import functools

import pytest
import torch

pytest.importorskip("triton")

from axonnx.models import LIF, MEAN_FIELD, Current, RecurrentSNN, Run, Sample, SpikingResNet, make_estimator, variant
from axonnx.models.fast import core, lif_core, lif_triton, triton_kernels
from axonnx.models.fast.backend import computed_by
from axonnx.models.fast.core import gaps_as
from axonnx.models.fast.leaky_sum import leaky_sum
from axonnx.models.fast.lif import lif_sequence
from axonnx.models.maths.firing import Drawn
from axonnx.train.objective import Objective

from . import test_lif_core as cases
from .test_lif_core import Case, make_inputs, make_layer, run

CLOSE = 1e-5
RELAXED = {"gs": make_estimator("gs"), "gs(0.3, logistic)": make_estimator("gs", k=0.3, noise="logistic")}
BINARY = ["st", *cases.ESTIMATORS]


@pytest.fixture(autouse=True)
def _estimators(monkeypatch):
    for name, made in RELAXED.items():
        monkeypatch.setitem(cases.ESTIMATORS, name, made)


@pytest.fixture
def passes(monkeypatch) -> list[str]:
    """The kernels that were launched."""
    names: list[str] = []
    original = lif_triton.launch

    def launch(kernel, *given, **options):
        names.append(kernel.fn.__name__)
        original(kernel, *given, **options)

    monkeypatch.setattr(lif_triton, "launch", launch)
    return names


def assert_same(case: Case, binary: bool = True) -> None:
    """Bits forwards, but for results of exponentials and sums of products, whose order is not fixed (``make_layer``
    makes those of means exact); gradients to ``CLOSE`` of the largest.
    """
    with computed_by("triton"):
        given, grads = run(case, "core")
    with computed_by("torch"):
        other, expected = run(case, "core")
    for name, value in given.items():
        if value is None or other[name] is None:
            assert value is other[name], name
        elif binary and not (case.layout == "recurrent-weight" and name in ("variance", "remembered")):
            assert torch.equal(value, other[name]), name
        else:
            torch.testing.assert_close(value, other[name], rtol=0, atol=CLOSE)
    assert any(gradient.abs().max() > 1e-6 for gradient in expected.values())
    for name, gradient in expected.items():
        scale = max(gradient.abs().max().item(), 1.0 if gradient.numel() == 1 else 0.2)  # terms around 1 cancel
        torch.testing.assert_close(grads[name], gradient, rtol=0, atol=CLOSE * scale, msg=lambda t, n=name: f"{n}: {t}")


# Every estimator meets every form of variance and both resets; three of them every pair of these.
CASES = [
    (layout, estimator, reset, ("layer", "neuron")[(number + place) % 2])
    for number, estimator in enumerate([*BINARY, *RELAXED])
    for place, layout in enumerate(cases.LAYOUTS)
    for way, reset in enumerate(["subtract", "zero"])
    if estimator in ("st", "iwst(0.3)", "gs_st") or way == (number + place) % 2
]


@pytest.mark.parametrize(("layout", "estimator", "reset", "decay"), CASES)
def test_every_estimator_form_and_reset(layout, estimator, reset, decay, passes):
    case = Case(layout, "sample", 3, 1, 3, estimator=estimator, reset=reset, decay=decay)
    assert_same(case, binary=estimator not in RELAXED)
    start = "recurrent_" if layout.startswith("recurrent") else ""
    assert passes == [f"{start}forward", f"{start}backward"]  # one launch for the layer and direction


@pytest.mark.parametrize("layout", cases.LAYOUTS)
@pytest.mark.parametrize("fire", ["mean-field", "sg"])
@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_without_noise(layout, fire, reset, passes):
    assert_same(Case(layout, fire, 3, 2, 3, reset=reset, decay="neuron"))
    assert len(passes) == 2


@pytest.mark.parametrize(
    "case",
    [
        Case("conv", "sample", 2, 1, 181, decay="neuron"),  # 543 pixels: many programs, the last one not full
        Case("dense", "sample", 2, 1, 600),  # two groups of channels
        Case("recurrent-layer", "sample", 3, 19, 3, decay="neuron"),  # two programs
        Case("recurrent-weight", "sample", 2, 5, 20),  # more neurons than one piece of a product
    ],
    ids=["pixels", "channels", "samples", "neurons"],
)
def test_sizes_that_no_program_has_alone(case):
    assert_same(case)


@pytest.mark.parametrize("layout", ["dense", "conv", "recurrent-layer"])
def test_noise_has_the_bits_of_the_native_core(layout):
    """ε|ε| of the two generators, and with it every spike of a sampled pass."""
    case = Case(layout, "sample", 3, 2, 37 if layout == "dense" else 5)
    noise, found = Drawn(seed=0x1234567890ABCDEF, step=3, scale=0.7), []
    for name in ("native", "triton"):
        lif, inputs = make_layer(case), make_inputs(case)
        current = Current(*(inputs[key].detach() for key in ("mean", "activity", "gain")))
        ledger = Run(lif, MEAN_FIELD, sequence=True)
        with computed_by(name), torch.no_grad():
            lif._through_time(current, lif.at_rest(torch.zeros_like(current.mean[0]), True), noise, None, ledger)
        found.append(ledger.observations[""].spikes)
    assert torch.equal(*found)
    assert 0.1 < found[0].mean() < 0.9
    reference = lif_core.squares_of_noise(noise, torch.empty(4, 3, 37))
    assert torch.equal(_drawn(noise, 4, 3, 37), reference)
    assert not torch.equal(_drawn(Drawn(noise.seed ^ 1, 3, 0.7), 4, 3, 37), reference)


def _drawn(noise: Drawn, steps: int, batch: int, channels: int) -> torch.Tensor:
    """ε|ε| of a dense layer, as the kernels draw it."""
    out = torch.empty(steps, batch, channels)
    triton_kernels.draw_squares[(batch,)](
        out, noise.seed, noise.step, noise.scale * noise.scale, steps, batch, channels, BLOCK=64
    )
    return out


@pytest.mark.parametrize("noisy", [False, True])
def test_a_membrane_on_the_threshold_fires(noisy, passes):
    """The tie rule, and silence: a neuron that nothing reaches stays silent."""
    currents = torch.tensor([1.0, 1.0 - 2**-24, 1.0 + 2**-23, 0.0]).reshape(1, 1, 4)
    activity, gain = (torch.ones(1, 1, 1), torch.ones(4)) if noisy else (None, None)
    rest = torch.zeros(1, 4)
    with computed_by("triton"):
        found = lif_sequence(
            Current(currents, activity, gain),
            torch.zeros(1, 1, 4) if noisy else None,
            (rest, rest.clone() if noisy else None, rest.clone()),
            torch.tensor(0.5),
            torch.tensor(1.0),
            None,
            None,
            make_estimator("st" if noisy else "sg"),
        )
    assert found.spikes.flatten().tolist() == [1.0, 0.0, 1.0, 0.0]
    assert passes == ["forward"]


def test_silence_has_finite_gradients():
    """No current, no variance: nothing fires, and no gradient comes from a variance of zero."""
    lif = LIF(variant("sbnn"))
    mean = torch.zeros(3, 2, 4, requires_grad=True)
    activity, gain = torch.zeros(3, 2, 1), torch.ones(4, requires_grad=True)
    with torch.no_grad():
        lif.log_base_std.fill_(-60.0)  # κ² underflows
    ledger = Run(lif, Sample(torch.Generator().manual_seed(1)), sequence=True)
    with computed_by("triton"):
        spikes = lif(Current(mean, activity, gain), ledger)
        (spikes.sum() + ledger.divergences[""].quadratic).backward()
    assert spikes.sum() == 0.0
    assert mean.grad.abs().max() == 0.0
    assert gain.grad.abs().max() == 0.0


def network_case(make, x: torch.Tensor, name: str) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    torch.manual_seed(0)
    network = make()
    with computed_by(name), gaps_as(torch.float32):
        output = network(x, Sample(torch.Generator().manual_seed(1)))
        Objective(0.1)(network, output, torch.arange(x.shape[1]) % 3).total.backward()
    spikes = [seen.spikes.detach() for seen in output.observations.values()]
    return spikes, [p.grad for p in network.parameters()]


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: RecurrentSNN(12, (9, 7), 3), (3, 2, 12)),
        (lambda: SpikingResNet(2, (4, 8), 1, 3, size=8), (2, 2, 2, 8, 8)),
    ],
    ids=["recurrent", "residual"],
)
def test_a_network_learns_the_same_as_on_the_cpu(make, shape, passes):
    """Same seed, same noise, in the core and in the kernels: the same spikes, the same gradients up to rounding."""
    x = (torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.4).float()
    spikes, grads = network_case(make, x, "triton")
    launched = len(passes)
    others, expected = network_case(make, x, "native")
    assert launched == len(passes)  # the second run had none
    assert launched >= 2 * len(spikes)
    agreeing = sum(float((a == b).float().mean()) for a, b in zip(spikes, others, strict=True)) / len(spikes)
    assert agreeing > 0.999  # sums of products in torch's order: a membrane on its threshold may fall either way
    assert sum(float(layer.sum()) for layer in spikes) > 0
    if agreeing == 1.0:
        for ours, other in zip(grads, expected, strict=True):
            torch.testing.assert_close(ours, other, rtol=0, atol=1e-4 * max(1e-3, other.abs().max().item()))


def test_the_read_out_has_the_bits_of_its_plain_loop(passes):
    current, zeros = torch.randn(5, 3, 7, generator=torch.Generator().manual_seed(1)), torch.zeros(3, 7)
    with computed_by("triton"):
        found = leaky_sum(current, zeros, zeros, torch.tensor(0.9))
    with computed_by("torch"):
        expected = leaky_sum(current, zeros, zeros, torch.tensor(0.9))
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert passes == ["leaky_sum"]
    assert zeros.abs().max() == 0.0  # in place of a copy alone


@pytest.mark.parametrize(
    ("estimator", "named"),
    [(make_estimator("gr"), "GumbelRao"), (make_estimator("iwst", p=torch.sqrt), "ImportanceWeighted")],
)
def test_what_has_no_kernel_runs_in_torch_and_is_named_once(estimator, named, caplog, passes, monkeypatch):
    monkeypatch.setattr(core, "say_in_torch", functools.cache(core.say_in_torch.__wrapped__))
    lif, inputs = make_layer(Case("dense", "sample")), make_inputs(Case("dense", "sample"))
    lif.estimator = estimator
    with caplog.at_level("INFO", "axonnx.models.fast.core"), computed_by("triton"):
        for _ in range(2):
            lif(Current(inputs["mean"], inputs["activity"], inputs["gain"]), Run(lif, MEAN_FIELD, sequence=True))
    assert passes == []
    said = [record.message for record in caplog.records if "no fused pass" in record.message]
    assert len(said) == 1
    assert named in said[0]


@pytest.mark.parametrize(
    "weights",
    [torch.randn(4096) * 0.1, torch.randn(4096) * 1e-20, torch.tensor([0.0, -0.0, 3.3e38, 2.0**-109, 1 + 2.0**-23])],
    ids=["usual", "tiny", "ends"],
)
def test_three_bfloat16_parts_are_a_float32(weights):
    """Exactly, in any order of adding the parts that keeps 24 bits; products with 0 and 1 are then exact."""
    parts = lif_triton.exact_parts(weights)
    assert parts.dtype == torch.bfloat16
    assert torch.equal(parts.double().sum(0), weights.double())
    assert not torch.equal(parts[:2].double().sum(0), weights.double())  # two would not do
