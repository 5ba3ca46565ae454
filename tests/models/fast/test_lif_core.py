"""Time steps in the native core against the same in torch: equal bits forwards, equal gradients up to rounding.

Every instruction set that this processor has is forced in turn.
"""

from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from axonnx import native
from axonnx.models import (
    LIF,
    MEAN_FIELD,
    BinaryNeuron,
    Current,
    Divergence,
    LIFSettings,
    LIFState,
    RecurrentSNN,
    Regulariser,
    Replay,
    Run,
    Sample,
    SpikingResNet,
    State,
    Variant,
    divergence_sum,
    make_estimator,
    variant,
)
from axonnx.models.fast import core, lif_core
from axonnx.models.fast import lif_torch as lif_steps
from axonnx.models.fast.lif import lif_sequence
from axonnx.models.maths.estimators import Estimator
from axonnx.models.maths.firing import Drawn
from axonnx.models.neurons import Neurons

FOUND = native.core()
if FOUND is None:
    pytest.skip("installed without the native core", allow_module_level=True)
ISAS = FOUND.isas

# One row of 256 neurons adds up 256 terms in another order, and exponentials differ in their last bit: some 1e-6 of
# the largest gradient, with room for sums over steps.
CLOSE = 1e-5


class Case(NamedTuple):
    """A layer, how it fires, and the sizes of its input."""

    layout: str  # dense, dense-whole, conv, conv-whole, recurrent-layer, recurrent-neuron, recurrent-weight
    fire: str  # mean-field, sample, sg
    steps: int = 7
    batch: int = 3
    size: int = 5
    estimator: str = "st"
    threshold: float = 1.0
    base_std: float = 0.3
    reset: str = "subtract"
    decay: str = "layer"


LAYOUTS = ["dense", "dense-whole", "conv", "conv-whole", "recurrent-layer", "recurrent-neuron", "recurrent-weight"]
FIRES = ["mean-field", "sample", "sg"]


def make_layer(case: Case) -> LIF:
    torch.manual_seed(1)
    granularity = case.layout.partition("-")[2] if case.layout.startswith("recurrent") else "layer"
    if case.fire == "sg":
        kind = Variant(spread="none", kl=False, estimator=make_estimator("sg"), fire="mean_field")
    else:
        made = ESTIMATORS.get(case.estimator) or make_estimator(case.estimator)
        kind = Variant(granularity=granularity, estimator=made)
    learned = "neuron" if case.decay == "neuron" else True
    constants = LIFSettings(
        case.threshold, 0.8, learn_decay=learned, reset=case.reset, base_std=case.base_std, learn_threshold=learned
    )
    shape = (4, 1, 1) if case.layout.startswith("conv") else (case.size,)
    lif = LIF(kind, constants, recurrent=case.size if case.layout.startswith("recurrent") else None, shape=shape)
    with torch.no_grad():
        if case.decay == "neuron":
            lif.decay_logit += torch.randn_like(lif.decay_logit)
            lif.threshold *= 0.5 + torch.rand_like(lif.threshold)
        if lif.recurrent is not None:  # a BLAS may add up in any order: make sums exact
            weights = lif.recurrent.posterior.raw_mean
            weights.copy_((weights * 1024).round() / 1024)
            if case.estimator == "gs":  # whose spikes are real numbers: one term for each sum
                weights.mul_(torch.eye(case.size).roll(1, 0))
    return lif


def make_inputs(case: Case) -> dict[str, Tensor]:
    torch.manual_seed(2)
    conv, whole = case.layout.startswith("conv"), case.layout.endswith("whole")
    channels, places = (4, (case.size, 3)) if conv else (case.size, ())
    shape = (case.batch, channels, *places)
    drawn = {
        "mean": 0.5 + torch.randn(case.steps, *shape),
        "membrane": torch.randn(shape),
        "spikes": (torch.rand(shape) < 0.5).float(),
    }
    if case.fire != "sg":
        drawn["variance"] = 0.1 + torch.rand(shape)
        drawn["activity"] = 0.1 + torch.rand(case.steps, case.batch, channels if whole else 1, *places)
        if not whole:
            drawn["gain"] = 0.1 + torch.rand(channels, *(1,) * len(places))
    return {name: value.requires_grad_() for name, value in drawn.items()}


def run(case: Case, path: str) -> tuple[dict[str, Tensor | None], dict[str, Tensor]]:
    """Everything that a pass gives, and the gradients of a loss that reads all of it."""
    lif, inputs = make_layer(case), make_inputs(case)
    noise = torch.randn(inputs["mean"].shape, generator=torch.Generator().manual_seed(3))
    fire = Replay({"": noise}) if case.fire == "sample" else MEAN_FIELD
    state = LIFState(inputs["membrane"], inputs.get("variance"), inputs["spikes"])
    ledger = Run(lif, fire, State(0, {"": state}), sequence=True)
    current = Current(inputs["mean"], inputs.get("activity"), inputs.get("gain"))
    with pytest.MonkeyPatch.context() as patch:
        if path != "core":
            patch.setattr(lif_core, "applies", lambda *_: False)
        if path == "plain":
            patch.setattr(LIF, "_through_time", Neurons._through_time)
        lif(current, ledger)
        seen, after = ledger.observations[""], ledger.after[""]
        observed = {"gap": seen.gap, "variance": seen.variance, "spikes": seen.spikes}
        given = {**observed, "membrane": after.membrane, "remembered": after.variance, "last": after.spikes}
        return given, gradients(given, ledger.divergences.get(""), {**inputs, **dict(lif.named_parameters())})


def gradients(
    given: dict[str, Tensor | None], divergence: Divergence | None, named: dict[str, Tensor]
) -> dict[str, Tensor]:
    torch.manual_seed(4)
    loss = sum((torch.randn(value.shape) * value).sum() for value in given.values() if value is not None)
    if given["variance"] is not None:
        sums = divergence or [divergence_sum(given["gap"], given["variance"], form) for form in ("log", "quadratic")]
        loss = loss + sums[0] + 0.03 * sums[1]
    found = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return {name: torch.zeros_like(named[name]) if g is None else g for name, g in zip(named, found, strict=True)}


def assert_same(case: Case) -> None:
    (given, grads), *others = (run(case, path) for path in ("core", "torch", "plain"))
    for other, expected in others:
        for name, value in given.items():
            assert (value is None and other[name] is None) or torch.equal(value, other[name]), name
        assert any(gradient.abs().max() > 1e-6 for gradient in expected.values())
        for name, gradient in expected.items():
            # One number for the layer is a sum of terms around 1 that cancel.
            scale = max(gradient.abs().max().item(), 1.0 if gradient.numel() == 1 else 1e-3)
            torch.testing.assert_close(
                grads[name], gradient, rtol=0, atol=CLOSE * scale, msg=lambda text, name=name: f"{name}: {text}"
            )


@pytest.fixture
def counted(monkeypatch) -> list[str]:
    """Which way each pass over a sequence went."""
    ways: list[str] = []
    for module, name, attribute in ((lif_core, "core", "lif_pass"), (lif_steps, "torch", "forward_steps")):
        original = getattr(module, attribute)
        monkeypatch.setattr(module, attribute, lambda *given, f=original, n=name: (ways.append(n), f(*given))[1])
    return ways


@pytest.fixture(params=ISAS)
def isa(request, monkeypatch) -> str:
    """Each instruction set, forced."""
    use(request.param, monkeypatch)
    return request.param


def use(isa: str, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(core, "_function", lambda name: FOUND.function(name, None, isa=isa))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fire", FIRES)
@pytest.mark.parametrize("decay", ["layer", "neuron"])
def test_steps_in_the_core_are_the_steps_in_torch(layout, fire, decay, counted, isa):
    assert_same(Case(layout, fire, decay=decay))
    assert counted == ["core", "torch"]


@pytest.mark.parametrize("layout", ["recurrent-layer", "recurrent-neuron", "recurrent-weight"])
def test_samples_beyond_a_whole_group_have_their_own_gradients(layout, isa):
    """Eight samples of a recurrent layer go backwards together."""
    assert_same(Case(layout, "sample", batch=11, decay="neuron"))


@given(
    case=st.builds(
        Case,
        layout=st.sampled_from(LAYOUTS),
        fire=st.sampled_from(FIRES),
        steps=st.sampled_from([1, 2, 6, 13]),
        batch=st.sampled_from([1, 7]),
        size=st.sampled_from([1, 3, 8, 33]),
        threshold=st.sampled_from([1.0, 0.7]),
        base_std=st.sampled_from([0.0, 0.3]),
        estimator=st.just("st"),
        reset=st.just("subtract"),
        decay=st.sampled_from(["layer", "neuron"]),
    ),
    isa=st.sampled_from(ISAS),
)
@settings(deadline=None, derandomize=True, max_examples=80)
def test_odd_sizes_single_steps_and_single_samples(case, isa):
    with pytest.MonkeyPatch.context() as patch:
        use(isa, patch)
        assert_same(case)


ESTIMATORS = {
    "iwst(0)": make_estimator("iwst", p=0.0),
    "iwst(0.3)": make_estimator("iwst", p=0.3),
    "iwst(1)": make_estimator("iwst", p=1.0),
    "iwst(F)": make_estimator("iwst", p="F"),
    "iwst(low_variance)": make_estimator("iwst", p="low_variance"),
    "agr": make_estimator("agr"),
    "agr(0.05)": make_estimator("agr", k=0.05),
    "gs_st": make_estimator("gs_st"),
    "gs_st(0.2, logistic)": make_estimator("gs_st", k=0.2, noise="logistic"),
    "sg": make_estimator("sg"),
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("layout", ["dense", "conv", "recurrent-layer"])
@pytest.mark.parametrize("fire", ["sample", "mean-field"])
def test_every_estimator_of_binary_spikes(layout, estimator, fire, counted, isa):
    assert_same(Case(layout, fire, estimator=estimator))
    assert counted == ["core", "torch"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fire", FIRES)
@pytest.mark.parametrize("decay", ["layer", "neuron"])
def test_a_reset_to_zero_is_that_of_the_plain_loop(layout, fire, decay, counted, isa):
    assert_same(Case(layout, fire, decay=decay, reset="zero"))
    assert counted == ["core"]


@pytest.mark.parametrize(
    "estimator", ["gs", "gr", "iwst"], ids=["relaxed spikes", "Monte Carlo", "a function of the probability"]
)
def test_what_has_no_pass_runs_in_torch_and_is_named_once(estimator, counted, caplog):
    made = make_estimator("iwst", p=torch.sqrt) if estimator == "iwst" else make_estimator(estimator)
    with caplog.at_level("INFO", "axonnx.models.fast.core"):
        for _ in range(2):
            run_core(Case("recurrent-layer", "sample"), made)
    assert counted == ["torch", "torch"]
    assert sum("no fused pass" in record.message for record in caplog.records) == 1


def run_core(case: Case, estimator: Estimator) -> None:
    lif, inputs = make_layer(case), make_inputs(case)
    lif.estimator = estimator
    current = Current(inputs["mean"], inputs["activity"], inputs["gain"])
    lif(current, Run(lif, MEAN_FIELD, sequence=True))


@pytest.mark.parametrize("change", ["float64", "graded initial spikes"])
def test_what_kernels_do_not_know_is_left_to_torch(change, counted):
    lif, inputs = make_layer(Case("recurrent-layer", "sample")), make_inputs(Case("recurrent-layer", "sample"))
    if change == "float64":
        lif, inputs = lif.double(), {name: value.double() for name, value in inputs.items()}
    else:
        inputs["spikes"] = torch.full_like(inputs["spikes"], 0.3)
    state = LIFState(inputs["membrane"], inputs["variance"], inputs["spikes"])
    ledger = Run(lif, MEAN_FIELD, State(0, {"": state}), sequence=True)
    lif(Current(inputs["mean"], inputs["activity"], inputs["gain"]), ledger)
    assert counted == ["torch"]


@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_gradients_of_constants_add_up_without_error_over_pixels_and_samples(reset, isa):
    """Alike neurons, so many that a float32 sum would drift: the sum is a power of two times that of one neuron."""
    found = []
    for batch, side in ((1, 1), (8, 64)):
        lif = LIF(variant("sg-nbn-1"), LIFSettings(1.0, 0.8, learn_decay=True, learn_threshold=True, reset=reset))
        current = Current(torch.full((3, batch, 1, side, side), 0.3))
        lif(current, Run(lif, MEAN_FIELD, sequence=True)).sum().backward()
        found.append(torch.stack([lif.decay_logit.grad, lif.threshold.grad]) / (batch * side * side))
    assert found[0].abs().min() > 1e-3
    assert torch.equal(*found)


def test_threads_change_no_bit(monkeypatch):
    """Forwards, backwards, and in the sums."""
    monkeypatch.setattr(core, "_WORTH_A_THREAD", 1)
    for layout in LAYOUTS:
        case, found = Case(layout, "sample", batch=11, decay="neuron"), []
        for threads in (1, 2, 3):
            monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
            given, grads = run(case, "core")
            found.append([x for x in (*given.values(), *grads.values()) if x is not None])
        for other in found[1:]:
            assert all(torch.equal(x, y) for x, y in zip(found[0], other, strict=True)), layout


NOISE = Drawn(seed=0x1234567890ABCDEF, step=3, scale=0.7)


@pytest.mark.parametrize("layout", ["dense", "conv", "recurrent-layer"])
def test_noise_that_is_drawn_is_a_function_of_its_place(layout, isa):
    """The array of ε|ε| decides as the pass does; the same bits with every instruction set."""
    case = Case(layout, "sample", size=37)
    lif, inputs = make_layer(case), make_inputs(case)
    current = Current(*(inputs[name].detach() for name in ("mean", "activity", "gain")))
    ledger = Run(lif, MEAN_FIELD, sequence=True)
    with torch.no_grad():
        lif._through_time(current, lif.at_rest(torch.zeros_like(current.mean[0]), True), NOISE, None, ledger)
    seen, squares = ledger.observations[""], lif_core.squares_of_noise(NOISE, current.mean)
    assert torch.equal(seen.spikes, (seen.variance * squares >= -(seen.gap * seen.gap.abs())).float())
    with pytest.MonkeyPatch.context() as patch:
        use("plain", patch)
        assert torch.equal(squares, lif_core.squares_of_noise(NOISE, current.mean))
    later = lif_core.squares_of_noise(replace(NOISE, step=4), current.mean[:-1])
    assert torch.equal(later, squares[1:])


def test_drawn_noise_is_standard_normal():
    drawn = lif_core.squares_of_noise(Drawn(5, 0), torch.empty(64, 64, 512))
    values = (drawn.sign() * drawn.abs().sqrt()).double()
    ordered = values.flatten().sort().values
    expected = torch.special.ndtr(ordered)
    assert (expected - (torch.arange(len(ordered)) + 0.5) / len(ordered)).abs().max() < 1.63 / len(ordered) ** 0.5
    assert abs(values.mean()) < 4 / len(ordered) ** 0.5
    assert abs((values**4).mean() - 3.0) < 4 * (96 / len(ordered)) ** 0.5
    for shift in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 16), (1, 0, 16)):
        together = (values * values.roll(shift, (0, 1, 2))).mean()
        squared = ((values**2 - 1) * (values.roll(shift, (0, 1, 2)) ** 2 - 1)).mean() / 2
        assert max(abs(together), abs(squared)) < 4.5 / len(ordered) ** 0.5, shift


@pytest.mark.parametrize("layout", ["dense", "conv", "recurrent-layer"])
def test_gradients_of_float16_gaps_are_close(layout, isa):
    """To 4e-3 of the largest gradient: the gap has 11 bits, and slopes fall off with its square."""
    case = Case(layout, "sample", decay="neuron")
    _, exact = run(case, "core")
    with core.gaps_as(torch.float16):
        given, near = run(case, "core")
    spikes, _ = run(case, "torch")
    assert torch.equal(given["spikes"], spikes["spikes"])
    assert any(not torch.equal(near[name], exact[name]) for name in exact)
    for name, gradient in exact.items():
        torch.testing.assert_close(near[name], gradient, rtol=0, atol=4e-3 * gradient.abs().max().item())


def trained_gradients(network, x, how, fire):
    """Gradients of a loss with regulariser, what autograd kept, and the gaps that were observed."""
    network.zero_grad()
    sizes: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with core.gaps_as(how), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = network(x, fire())
    (output.logits.square().sum() + network.regulariser(output)).backward()
    grads = {name: weight.grad.clone() for name, weight in network.named_parameters() if weight.grad is not None}
    return grads, sum(sizes.values()), {name: seen.gap.detach() for name, seen in output.observations.items()}


@pytest.mark.parametrize(
    "fire", [lambda: MEAN_FIELD, lambda: Sample(torch.Generator().manual_seed(5))], ids=["mean", "noise"]
)
@pytest.mark.parametrize("kind", ["recurrent", "residual"])
@pytest.mark.parametrize("graded", [False, True], ids=["spikes", "counts"])
def test_gaps_that_are_computed_again_have_the_gradients_of_float32_and_keep_less(kind, graded, fire):
    torch.manual_seed(0)
    if kind == "recurrent":
        network, shape = RecurrentSNN(21, (18, 16), 3), (40, 5, 21)
    else:
        network, shape = SpikingResNet(widths=(4, 8, 16), blocks=1, classes=3, size=8), (6, 2, 2, 8, 8)
    x = torch.rand(shape)
    x = (3 * x).floor() if graded else (x < 0.3).float()
    exact, kept, gaps = trained_gradients(network, x, torch.float32, fire)
    again, less, recomputed = trained_gradients(network, x, None, fire)
    assert any(gradient.any() for gradient in exact.values())
    assert exact.keys() == again.keys()
    for name, gradient in exact.items():
        assert torch.equal(again[name], gradient), name
    for name, gap in gaps.items():
        assert torch.equal(recomputed[name], gap), name
    saved = 4 * sum(gap.numel() for gap in gaps.values())
    assert less <= kept - (saved if kind == "recurrent" else 0.4 * saved)


@pytest.mark.parametrize("isa_", ISAS)
def test_float16_is_rounded_as_torch_does(isa_, monkeypatch):
    use(isa_, monkeypatch)
    bits = torch.randint(-(2**31), 2**31 - 1, (1, 1, 100_000), generator=torch.Generator().manual_seed(1))
    edges = torch.tensor([0.0, -0.0, 2.0**-24, 2.0**-25, 3 * 2.0**-26, 2.0**-14, 65504.0, 65519.0, 7e4, -1e30])
    random = bits.to(torch.int32).view(torch.float32)
    small = torch.randn(100_000, generator=torch.Generator().manual_seed(2)) * 1e-3
    gaps = torch.cat([random.flatten().nan_to_num(1.0), small, edges, small.half().float() + 2.0**-25]).reshape(
        1, 1, -1
    )
    zero = torch.zeros_like(gaps[0])
    with core.gaps_as(torch.float16):
        current = Current(gaps.clone().requires_grad_())
        passed = lif_core.lif_pass(
            current, None, (zero, None, zero), torch.tensor(1.0), torch.tensor(0.0), None, None, None,
            make_estimator("sg"), False,
        )  # fmt: skip
    assert torch.equal(passed.gap, gaps.clamp(-65504, 65504).half())


@pytest.mark.parametrize("form", ["log", "quadratic"])
@pytest.mark.parametrize("layout", ["dense", "conv", "recurrent-layer", "recurrent-weight"])
@pytest.mark.parametrize("decay", ["layer", "neuron"])
def test_gradients_of_the_regulariser_are_those_of_autograd_in_double(layout, form, decay, monkeypatch):
    """The form written as a formula, differentiated step by step in float64."""
    case = Case(layout, "mean-field", decay=decay)
    found, spikes = [], []
    for kind in (torch.float32, torch.float64):
        lif = make_layer(case).to(kind)
        inputs = {name: value.detach().to(kind).requires_grad_() for name, value in make_inputs(case).items()}
        state = LIFState(inputs["membrane"], inputs["variance"], inputs["spikes"])
        ledger = Run(lif, MEAN_FIELD, State(0, {"": state}), sequence=True)
        spikes.append(lif(Current(inputs["mean"], inputs["activity"], inputs["gain"]), ledger))
        seen = ledger.observations[""]
        square = seen.gap.square() / seen.variance
        by_hand = square.sum() if form == "quadratic" else 0.5 * (1.0 + square).log().sum()
        total = ledger.divergences[""].of(form) if kind == torch.float32 else by_hand
        torch.testing.assert_close(total, by_hand)
        named = {**inputs, "decay": lif.decay_logit}
        found.append(torch.autograd.grad(total, list(named.values())))
        monkeypatch.setattr(LIF, "_through_time", Neurons._through_time)
    assert torch.equal(spikes[0].double(), spikes[1])
    for name, single, double in zip(named, *found, strict=True):
        scale = max(double.abs().max().item(), 1e-3)
        torch.testing.assert_close(
            single.double(), double, rtol=0, atol=CLOSE * scale, msg=lambda text, name=name: f"{name}: {text}"
        )


# The quadratic form's derivative by κ² is z²/κ²: at a deviation of 1.01e-10 more than a float32 can hold.
@pytest.mark.parametrize(
    ("std", "form"),
    [
        (std, form)
        for std in (0.0, 1e-15, 1.01e-10, 1e-5, 1.0, 100.0)
        for form in ("log", "quadratic")
        if (std, form) != (1.01e-10, "quadratic")
    ],
)
@pytest.mark.parametrize("z", [0.0, 1.0, 10.0, 13.0, 1e4])
def test_gradients_are_finite_where_noise_vanishes(std, z, form):
    """Through spikes and through the regulariser; where a neuron has no noise, there are none."""
    lif = LIF(Variant(), LIFSettings(decay=0.5, base_std=0.0))
    gap = z * std if std > 0 else z
    mean = torch.full((2, 1, 9), 1.0 + gap, requires_grad=True)
    activity = torch.full((2, 1, 9), std * std, requires_grad=True)
    ledger = Run(lif, MEAN_FIELD, sequence=True)
    spikes = lif(Current(mean, activity), ledger)
    (spikes.sum() + ledger.divergences[""].of(form)).backward()
    assert mean.grad.isfinite().all()
    assert activity.grad.isfinite().all()
    if std * std <= 1e-20:
        assert mean.grad.abs().max() == activity.grad.abs().max() == 0.0


def test_the_density_of_the_kernels_is_that_of_the_estimator():
    """z from 0 to 10.7: three roundings of z²/2 ≤ 58 are up to 1e-5, absolute, which is relative in the exponential."""
    gap = torch.linspace(0.0, 4.3, 5000)
    lif = LIF(variant("sg-nbn-1"), LIFSettings(decay=0.0))
    mean = (gap + 1.0).reshape(1, 1, -1).requires_grad_()
    lif(Current(mean), Run(lif, MEAN_FIELD, sequence=True)).sum().backward()
    exact, _ = make_estimator("sg").slopes((mean.detach() - 1.0).double(), None, gap, None)
    torch.testing.assert_close(mean.grad.double(), exact, rtol=2e-5, atol=1e-26)


@pytest.mark.parametrize("fire", [MEAN_FIELD, Sample(torch.Generator())], ids=["mean-field", "sample"])
def test_the_regulariser_of_a_network_is_the_sum_over_its_neurons(fire):
    network, events = RecurrentSNN(12, (9, 7), 3), (torch.rand(13, 4, 12) < 0.3).float()
    output = network(events, fire)
    assert set(output.divergences) == set(output.observations)
    for form in ("log", "quadratic"):
        expected = sum(divergence_sum(seen.gap, seen.variance, form) for seen in output.observations.values()) / 4
        torch.testing.assert_close(network.regulariser(output, Regulariser(form, total="sum")), expected)
    with torch.no_grad():
        assert network(events, fire).divergences == {}


def test_only_bits_and_gaps_are_kept():
    """Beside the factors of the variance: a bit and a gap for each neuron and step, whatever the estimator reads."""
    for name, dtype in (("st", torch.float32), ("gs_st", torch.float32), ("st", torch.float16)):
        sizes: dict[int, int] = {}

        def pack(tensor: Tensor, sizes: dict[int, int] = sizes) -> Tensor:
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        lif, (steps, batch, size) = LIF(Variant(estimator=make_estimator(name))), (50, 8, 64)
        current = Current(
            torch.randn(steps, batch, size, requires_grad=True), torch.ones(steps, batch, 1), torch.ones(64)
        )
        with core.gaps_as(dtype), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            lif(current, Run(lif, Sample(), sequence=True))
        gaps, bits = steps * batch * size * dtype.itemsize, (steps + 1) * batch * size // 8
        factors, state = 4 * (steps * batch + size + 3), 3 * 4 * batch * size
        assert sum(sizes.values()) <= gaps + bits + factors + state


def test_a_second_derivative_is_refused():
    lif = LIF(Variant())
    mean = torch.randn(3, 2, 4, requires_grad=True)
    spikes = lif(Current(mean, torch.ones(3, 2, 4)), Run(lif, MEAN_FIELD, sequence=True))
    (first,) = torch.autograd.grad(spikes.square().sum(), mean, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_networks_learn_without_the_core(monkeypatch):
    monkeypatch.setattr(native, "core", lambda: None)
    network = RecurrentSNN(12, (9, 7), 3)
    output = network((torch.rand(5, 4, 12) < 0.3).float(), Sample())
    (output.logits.sum() + network.regulariser(output)).backward()
    assert output.divergences == {}
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())


@pytest.mark.parametrize("shape", [(5, 37), (3, 4, 5, 3)], ids=["dense", "map"])
@pytest.mark.parametrize("estimator", ["st", "iwst(0.3)", "sg"])
@pytest.mark.parametrize("sampled", [False, True], ids=["mean-field", "sample"])
def test_binary_neurons_fire_as_the_plain_formula(shape, estimator, sampled, monkeypatch, isa):
    torch.manual_seed(7)
    made = ESTIMATORS.get(estimator) or make_estimator(estimator)
    neuron, found = BinaryNeuron(Variant(estimator=made), threshold=0.25), []
    mean = torch.randn(shape, requires_grad=True)
    activity = (0.1 + torch.rand(shape[0], 1, *shape[2:])).requires_grad_()
    gain = (0.1 + torch.rand(shape[1], *(1,) * (len(shape) - 2))).requires_grad_()
    fire = Replay({"": torch.randn(shape)}) if sampled else MEAN_FIELD
    by = torch.randn(shape), torch.randn(shape)
    for plain in (False, True):
        if plain:
            monkeypatch.setattr(lif_core, "applies", lambda *_: False)
        ledger = Run(neuron, fire)
        spikes = neuron(Current(mean, activity, gain), ledger)
        seen = ledger.observations[""]
        loss = (by[0] * spikes).sum() + (by[1] * seen.gap).sum()
        quadratic = ledger.divergences[""].quadratic if not plain else divergence_sum(seen.gap, seen.variance)
        grads = torch.autograd.grad(loss + 0.1 * quadratic, [mean, activity, gain])
        found.append((spikes, seen.gap, seen.variance, grads))
    for ours, other in zip(found[0][:3], found[1][:3], strict=True):
        assert torch.equal(ours, other)
    for ours, other in zip(found[0][3], found[1][3], strict=True):
        torch.testing.assert_close(ours, other, rtol=0, atol=CLOSE * other.abs().max().item())


@pytest.mark.parametrize("noisy", [False, True])
def test_a_membrane_on_the_threshold_fires(noisy, monkeypatch):
    """The tie rule, ≥ fires, which random numbers never meet: h* = θ exactly, and with noise ε = 0 as well."""
    currents = torch.tensor([1.0, 1.0 - 2**-24, 1.0 + 2**-23]).reshape(1, 1, 3)
    activity, gain = (torch.ones(1, 1, 1), torch.ones(3)) if noisy else (None, None)
    rest = torch.zeros(1, 3)
    monkeypatch.setattr(lif_steps, "forward_steps", None)  # in the core, or not at all
    found = lif_sequence(
        Current(currents, activity, gain),
        torch.zeros(1, 1, 3) if noisy else None,
        (rest, rest.clone() if noisy else None, rest.clone()),
        torch.tensor(0.5),
        torch.tensor(1.0),
        None,
        None,
        make_estimator("st" if noisy else "sg"),
    )
    assert found.spikes.flatten().tolist() == [1.0, 0.0, 1.0]
