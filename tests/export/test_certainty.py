"""Decisions and probabilities of imported networks: the rule, the temperature, and what follows from them."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import axonnx
from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.export.certainty import exact_scale, fitted_scale
from axonnx.export.convert import importing
from axonnx.export.verify.plain_certainty import check_margin, check_scale
from axonnx.runtime.measure.metrics import metrics_of
from axonnx.runtime.model import load
from axonnx.runtime.streams.probabilities import softmax
from axonnx.train.build import prepare
from axonnx.train.config.read import read_config

from .tiny_runs import make_run, write_frames

SETTINGS = {"data.repeat": 25, "data.shift": 4}


def likelihood(outputs, labels, scale):
    return metrics_of(softmax(outputs * scale), labels).nll


@pytest.fixture(scope="module")
def noisy():
    """Outputs whose true factor is 12: labels are drawn from softmax(12 · outputs)."""
    random = np.random.default_rng(3)
    outputs = random.normal(size=(4000, 5)) / 6
    powers = softmax(outputs * 12.0)
    return outputs, (powers.cumsum(1) < random.random((4000, 1))).sum(1)


def test_the_fitted_factor_is_the_one_of_which_labels_were_drawn(noisy):
    scale = fitted_scale(*noisy)
    assert 11.0 < scale < 13.0
    best = likelihood(*noisy, scale)
    assert best < min(likelihood(*noisy, scale * 1.1), likelihood(*noisy, scale / 1.1))


def test_all_right_is_no_certainty_and_all_wrong_is_no_probability():
    outputs, labels = np.eye(4)[np.arange(40) % 4], np.arange(40) % 4
    p = softmax(outputs * fitted_scale(outputs, labels)).max(1)
    assert np.allclose(p, 1 - 0.75 / 42)  # 1/(N + 2) of doubt, of which a quarter is on the class itself
    assert fitted_scale(-outputs, labels) is None


def test_factors_of_spikes_add_up_exactly_and_those_of_membranes_change_exponents_alone():
    for scale in (0.3, 1.0, 7.77, 25.0, 1234.5):
        spikes, membrane = exact_scale(scale, True), exact_scale(scale, False)
        assert abs(spikes / scale - 1) <= 2**-8
        assert np.frexp(membrane)[0] == 0.5
        assert 2**-0.5 <= membrane / scale <= 2**0.5
        sums = np.cumsum(np.full(60_000, spikes, np.float32), dtype=np.float32)
        assert np.array_equal(sums.astype(np.float64), spikes * np.arange(1, 60_001))


snntorch = pytest.importorskip("snntorch", reason="snnTorch is not installed")


class Shown(nn.Module):
    """snnTorch's tutorial 5, small: an image in 25 time steps, read out by its spikes."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.lif1 = nn.Linear(64, 48), snntorch.Leaky(beta=0.95)
        self.fc2, self.lif2 = nn.Linear(48, 10), snntorch.Leaky(beta=0.95)

    def forward(self, x):
        mem1, mem2, spikes, membranes = self.lif1.init_leaky(), self.lif2.init_leaky(), [], []
        for _ in range(25):
            hidden, mem1 = self.lif1(self.fc1(x.flatten(1)), mem1)
            out, mem2 = self.lif2(self.fc2(hidden), mem2)
            spikes.append(out)
            membranes.append(mem2)
        return torch.stack(spikes), torch.stack(membranes)


@pytest.fixture(scope="module")
def trained():
    """That network, trained for seconds as the tutorial does: cross-entropy of the membrane in every step."""
    splits = prepare(read_config("digits-static").data).splits
    x = torch.from_numpy(np.asarray(splits.train.frames)).float() / 16
    labels = torch.from_numpy(np.asarray(splits.train.labels)).long()
    torch.manual_seed(0)
    network = Shown()
    optimiser = torch.optim.Adam(network.parameters(), 2e-3)
    for _ in range(8):
        for chosen in torch.randperm(len(x)).split(128):
            _, membranes = network(x[chosen])
            loss = sum(nn.functional.cross_entropy(step, labels[chosen]) for step in membranes)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return network


@pytest.fixture(scope="module")
def imported(trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("imported")
    done = axonnx.import_network(
        trained, folder / "net.onnx", data="digits-static", settings=SETTINGS, limit=32, decision="count"
    )
    assert done.proof.equal
    return done


@pytest.fixture(scope="module")
def before_and_after(imported):
    """Metrics on the test part: of the source's rates as they are, and of the file."""
    data = prepare(read_config("digits-static", SETTINGS).data).splits.test
    model, values = load(imported.exported.path), np.asarray(data.frames).swapaxes(0, 1)
    found = model.run(model.prepare(values))
    rates = found.logits.astype(np.float64) / model.contract.decision.scale
    return [metrics_of(p, np.asarray(data.labels)) for p in (softmax(rates), found.probabilities)]


def test_probabilities_of_an_import_are_sane(imported, before_and_after):
    before, after = before_and_after
    assert (imported.exported.contract.decision.rule, imported.exported.contract.decision.fitted) == (
        "spike count",
        512,
    )
    assert before.accuracy == after.accuracy > 0.85
    assert before.ece > 0.6 > 0.1 > after.ece
    assert before.nll > 1.5 > 0.5 > after.nll


def test_every_engine_has_the_same_bits_and_the_largest_count_wins(imported, trained):
    x = torch.randint(0, 17, (6, 1, 8, 8), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        counts = trained(x.float() / 16)[0].sum(0).numpy()
    scale, bits = imported.exported.contract.decision.scale, []
    for engine in ("numpy", "native", "ort"):
        model = load(imported.exported.path, engine)
        bits.append(model.run(model.prepare(np.repeat(x.numpy()[None], 25, 0))).logits)
    assert np.array_equal(bits[0], (counts * np.float32(scale)) / np.float32(25))
    assert all(np.array_equal(bits[0].view(np.uint32), other.view(np.uint32)) for other in bits[1:])


def test_a_file_with_another_temperature_is_found(imported, tmp_path, capsys):
    import onnx

    model = onnx.load(imported.exported.path)
    contract = json.loads(model.metadata_props[0].value)
    contract["decision"]["scale"] *= 2
    model.metadata_props[0].value = json.dumps(contract)
    onnx.save(model, tmp_path / "other.onnx")
    words = ["--run", str(imported.folder), "--limit", "8", "--quiet"]
    assert main(["verify", str(tmp_path / "other.onnx"), *words]) == 1
    assert "contract.decision.scale" in capsys.readouterr().out
    assert main(["verify", str(imported.exported.path), *words]) == 0
    assert "temperature: all 512 samples that it was fitted on are none of 'test'" in capsys.readouterr().out


def test_a_temperature_fitted_on_the_test_part_is_found(trained, tmp_path, monkeypatch, capsys):
    part_feed = importing.part_feed

    def of_the_test_part(prepared, config, device, part, chosen):
        return part_feed(prepared, config, device, "test", np.arange(300))

    monkeypatch.setattr(importing, "part_feed", of_the_test_part)
    done = axonnx.import_network(
        trained, tmp_path / "net.onnx", data="digits-static", settings=SETTINGS, limit=8, decision="count"
    )
    words = ["--run", str(done.folder), "--limit", "8", "--quiet"]
    assert main(["verify", str(done.exported.path), *words]) == 1
    assert "temperature was fitted on 300 of 300 samples that are not of the parts train" in capsys.readouterr().out


def test_early_exit_ends_windows_of_an_import(imported):
    """It never did: the highest probability of rates among ten classes is e/(e + 9)."""
    found = axonnx.load(imported.exported.path).profile(imported.folder, limit=100)
    first = found.early_exit[0]
    assert first.mean_steps < 20 < 25
    assert first.accuracy > 0.8


def test_an_import_learns_further(imported, tmp_path, before_and_after):
    settings = {"model.begin": str(imported.folder), "optimiser.epochs": 4, "optimiser.weight_rate": 2e-3}
    done = axonnx.Run.train(imported.folder / "config.toml", tmp_path / "tuned", settings=settings)
    found, (_, before) = done.metrics["test"], before_and_after
    assert found["accuracy"] >= before.accuracy
    assert found["nll"] < 0.9 * before.nll


class Summed(Shown):
    """As above; the network itself counts its spikes."""

    def forward(self, x):
        return super().forward(x)[0].sum(0)


def test_a_sum_keeps_its_own_probabilities_without_data(trained, tmp_path):
    network = Summed()
    network.load_state_dict(trained.state_dict())
    done = axonnx.import_network(network, tmp_path / "net.onnx", shape=(1, 8, 8), limit=8)
    decision = done.exported.contract.decision
    assert done.proof.equal
    assert (decision.rule, decision.scale, decision.fitted) == ("sum", 25.0, 0)
    model, x = load(done.exported.path), torch.randint(0, 256, (4, 1, 8, 8))
    with torch.no_grad():
        expected = network(x.float() / 256)
    assert np.array_equal(model.run(model.prepare(np.repeat(x.numpy()[None], 25, 0))).logits, expected.numpy())


def test_labels_of_other_classes_are_refused(trained, tmp_path):
    network = Summed()
    network.load_state_dict(trained.state_dict())
    with torch.no_grad():  # classes in another order: each decision is wrong
        network.fc2.weight.copy_(network.fc2.weight.roll(1, 0))
        network.fc2.bias.copy_(network.fc2.bias.roll(1, 0))
    with pytest.raises(AxonnxError, match="check the order of the classes"):
        axonnx.import_network(network, tmp_path / "x.onnx", data="digits-static", settings=SETTINGS)


def test_one_number_is_no_class_but_a_value_with_a_unit(tmp_path):
    torch.manual_seed(0)
    hidden = {"beta": 0.9, "init_hidden": True}
    last = snntorch.Leaky(beta=0.5, init_hidden=True, reset_mechanism="zero")
    network = nn.Sequential(nn.Flatten(), nn.Linear(16, 12), snntorch.Leaky(**hidden), nn.Linear(12, 1), last)
    with torch.no_grad():
        network[1].weight.mul_(4.0)
        network[3].weight.mul_(6.0)
    with pytest.raises(AxonnxError, match="gives one number, which decides nothing among classes") as refusal:
        axonnx.import_network(network, tmp_path / "x.onnx", shape=(1, 4, 4), limit=8)
    assert "data.quantities" in refusal.value.settings
    frames = np.random.default_rng(0).integers(0, 2, (40, 10, 1, 4, 4)).astype(np.uint8)
    np.savez(tmp_path / "data.npz", frames=frames, labels=np.arange(40) % 4)
    settings = {"data.quantities": ["rate [Hz]"], "data.options": {"classes": ["0", "0.25", "0.5", "1"]}}
    done = axonnx.import_network(network, tmp_path / "y.onnx", data=tmp_path / "data.npz", settings=settings, limit=8)
    assert (done.exported.contract.classes, done.exported.contract.units) == (("rate",), ("Hz",))
    assert done.proof.equal, done.proof.lines()
    (found, *_) = axonnx.load(done.exported.path).predict(frames[:1])
    assert found.text.endswith(" Hz")


# Coverage: temperature and sets of possible classes, fitted on a validation part.


def parted_run(folder, validation: str):
    """A run of parts as they are; the validation part is of its own, or the test part once more."""
    data = folder / "data"
    data.mkdir(parents=True)
    write_frames(data / "train.npz")
    with np.load(data / "train.npz") as whole:
        for name, chosen in (("validation", slice(0, 30)), ("test", slice(30, 60))):
            np.savez(data / f"{name}.npz", frames=whole["frames"][chosen] + np.uint8(1), labels=whole["labels"][chosen])
    if validation == "test":
        (data / "validation.npz").write_bytes((data / "test.npz").read_bytes())
    return make_run(folder / "run", data, "spiking-mlp")


@pytest.fixture(scope="module")
def parted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parted")
    return {name: parted_run(folder / name, name) for name in ("own", "test")}


def test_margins_hold_the_share_that_they_state_on_the_samples_of_their_fit(parted, tmp_path):
    model = axonnx.Run(parted["own"]).export(tmp_path / "m.onnx", coverage=0.8, passes=1, limit=6)
    stated = model.contract.certainty
    assert (stated.coverage, stated.samples, stated.part, len(stated.margins)) == (0.8, 30, "validation", 5)
    found = model.evaluate(str(parted["own"]), part="validation", uncertainty=["noise", "turned"]).uncertainty
    # ⌈31 · 0.8⌉ = 25 of 30 samples, and no more unless scores are equal.
    assert min(found.sets.held) >= 25 / 30 - 1e-12
    assert found.temperature == pytest.approx(1 / stated.scale)
    assert found.unknown_samples == {"noise": 30, "turned": 30}
    decision = model.predict(np.load(parted["own"].parent / "data" / "test.npz")["frames"][0])
    assert decision.label in decision.possible
    assert (decision.answer is None) == (len(decision.possible) > 1)
    assert decision.probabilities == pytest.approx(
        softmax(stated.scale * decision.logits.astype(np.float64)), rel=1e-12
    )
    assert decision.as_dict()["possible"] == list(decision.possible)
    assert model.verify(parted["own"], limit=6).verified


def test_a_file_whose_fit_saw_test_samples_is_not_verified(parted, tmp_path):
    model = axonnx.Run(parted["test"]).export(tmp_path / "m.onnx", coverage=0.8, passes=1, limit=6)
    result = model.verify(parted["test"], limit=6)
    assert [stage.name for stage in result.stages if not stage.ok] == ["certainty"]
    (stage,) = (stage for stage in result.stages if stage.name == "certainty")
    assert "certainty was fitted on 30 samples, 30 of which are samples of 'test'" in stage.lines


def test_what_cannot_be_stated_is_refused(parted, tmp_path, capsys):
    run = str(parted["own"])
    for words, text in (
        (["--coverage", "0.99"], "cannot be stated from 30 validation samples; expected 99 or more"),
        (["--coverage", "1.5"], "expected a share between 0 and 1"),
    ):
        assert main(["export", run, "-o", str(tmp_path / "m.onnx"), *words, "--quiet"]) == 2
        assert text in capsys.readouterr().err
        assert not (tmp_path / "m.onnx").exists()


def test_a_run_without_a_validation_part_states_no_coverage(tmp_path, capsys):
    run = make_run(tmp_path / "run", write_frames(tmp_path / "frames.npz"), "spiking-mlp")
    assert main(["export", str(run), "-o", "m.onnx", "--coverage", "0.9", "--quiet"]) == 2
    assert "data.validation.share" in capsys.readouterr().err


def test_eval_tells_what_certainty_is_worth(parted, tmp_path, capsys):
    file = str(axonnx.Run(parted["own"]).export(tmp_path / "m.onnx", coverage=0.8, passes=1, limit=6).path)
    words = ["eval", file, "--data", str(parted["own"]), "--quiet"]
    assert main([*words, "--uncertainty", "noise,turned"]) == 0
    said = capsys.readouterr().out
    assert "maximum probability" in said
    assert "sets of 80 %: hold the true class of " in said
    for more, text in (
        (["--passes", "3"], "give uncertainty, too"),
        (["--passes", "3", "--uncertainty", "noise"], "without noise are all the same"),
        (["--jobs", "2", "--uncertainty", "noise"], "leave jobs out"),
        (["--uncertainty", "nonsense"], "nonsense"),
    ):
        assert main([*words, *more]) == 2
        assert text in capsys.readouterr().err


def test_passes_of_a_stochastic_file_are_averaged(parted, tmp_path):
    model = axonnx.Run(parted["own"]).export(tmp_path / "m.onnx", collapse="stochastic", passes=1, limit=6)
    one, three = (model.evaluate(str(parted["own"]), uncertainty=["noise"], passes=n) for n in (1, 3))
    assert "mutual information" not in one.uncertainty.signals
    assert three.uncertainty.signals["mutual information"].unknown["noise"] is not None
    x = np.load(parted["own"].parent / "data" / "test.npz")
    inputs = model.prepare(x["frames"].swapaxes(0, 1))
    each = [model.run(inputs, seed=seed, samples=range(30)).probabilities for seed in range(3)]
    assert three.nll == pytest.approx(metrics_of(np.mean(each, 0), x["labels"]).nll, rel=1e-12)


@pytest.mark.parametrize(("margin", "texts"), [(0.5, ["needs 3"]), (1.0, []), (1.5, ["wider"]), (3.0, ["wider"])])
def test_plain_margins_bite(margin, texts):
    # Scores of the true class, 0, are 0, 0.5, 1 and 2: a coverage of 0.6 needs three of four within the margin.
    members = [[[1.0, 0.0], [0.0, 0.5], [0.0, 1.0], [0.0, 2.0]]]
    lines = list(check_margin(margin, 0.6, members, [0] * 4))
    assert len(lines) == len(texts)
    assert all(text in line for text, line in zip(texts, lines, strict=True))


def test_a_plain_scale_bites():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 200)
    logits = rng.standard_normal((200, 3)) + 2 * np.eye(3)[labels]
    best = fitted_scale(logits, labels)
    assert list(check_scale(best, [logits.tolist()], labels.tolist())) == []
    assert len(list(check_scale(best * 1.05, [logits.tolist()], labels.tolist()))) == 1
    assert len(list(check_scale(best / 1.05, [logits.tolist()], labels.tolist()))) == 1
