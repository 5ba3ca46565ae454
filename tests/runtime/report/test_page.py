"""The whole page, of a small real model: well-formed, complete, honest about what is missing, and small."""

import re
from dataclasses import replace

import numpy as np
import pytest

from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.measure.comparison import Difference
from axonnx.runtime.measure.profile_result import EarlyExit
from axonnx.runtime.measure.verify_result import Accuracy, Stage, VerifyResult
from axonnx.runtime.report.material import Material
from axonnx.runtime.report.measure import Measured, Sample, measure
from axonnx.runtime.report.model_view import view_model
from axonnx.runtime.report.page import ANCHORS, render

from .conftest import read_samples
from .html_check import Page

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def page(material) -> Page:
    return Page(render(material))


def test_the_page_is_well_formed_and_points_nowhere(page):
    assert page.faults == []


def test_all_sections_are_there(page):
    ids = {attributes.get("id") for tag, attributes in page.tags if tag == "section"}
    assert ids == set(ANCHORS)


def test_nothing_is_said_to_be_missing(page):
    assert page.count("p", "missing") == 0


def test_the_verdict_stands_on_top(page):
    assert "Verified: 0 mismatches" in page.text
    assert "in 12,345 spikes, 678 membranes, 90 logits" in page.text
    assert page.count("div", "good") == 1


def test_key_figures(page):
    assert re.search(
        r"Accuracy [\d.]+ % 95 %: [\d.]+ – [\d.]+ %; on 24 samples \(of 60, stratified by class\)", page.text
    )
    assert "Spikes per inference 41" in page.text
    verdict = "fewer joules: no, below a rate of 10 % (here 20 %)"
    assert f"Energy per inference 5.00 nJ dense: 3.00 nJ; {verdict}" in page.text
    assert "Time per step 10.0 µs" in page.text


def test_drawings(page):
    assert page.count("path", "spikes") == 4 * 2  # samples × layers
    assert page.count("line", "threshold") >= 4 * 2
    assert page.count("article", "sample") == 4
    assert page.count("line", "cursor") == 4 * (1 + 2 + 1) + page.count("line", "threshold")
    assert page.count("path", "diagonal") == 1
    assert page.count("path", "whisker") >= 4


def test_every_button_and_field_has_a_name(page):
    for tag, attributes in page.tags:
        if tag == "input":
            assert attributes["aria-label"]
        if (attributes.get("class") or "") == "picture":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]


def test_the_page_is_small(material):
    assert len(render(material).encode()) < MEGABYTE // 4


def test_a_file_alone_says_what_to_run(model):
    page = Page(render(Material(view_model(model), "now")))
    assert page.faults == []
    for command in ("axonnx verify tiny.onnx", "axonnx profile tiny.onnx", "--run RUN", "--data samples.npz"):
        assert command in page.text
    assert "Collapse gap" in page.text  # from the contract
    assert "Not verified" in page.text


def test_a_divergence_is_red_and_exact(material):
    first = Difference(
        implementation="ort",
        what="membrane",
        layer="hidden.<1>",
        sample=4,
        step=7,
        neuron=(1, 2),
        expected=0.99999994,
        found=1.0,
    )
    stages = (Stage(name="engines", ok=False, lines=("layer <b>hidden</b> differs",)),)
    verify = VerifyResult(model="m", verdict="different", mismatches=3, stages=stages, first_divergence=first)
    page = Page(render(replace(material, verify=verify)))
    assert page.faults == []
    assert page.count("div", "bad") == 1
    assert "Not equal: 3 mismatches" in page.text
    assert "layer hidden.<1>, sample 4, step 7, neuron (1, 2): expected 0.99999994, found 1" in page.text
    assert "layer <b>hidden</b> differs" in page.text


def test_a_failed_structure_has_no_divergence_to_name(material):
    page = Page(render(replace(material, verify=VerifyResult(model="m", verdict="different"))))
    assert "Not equal: the file differs" in page.text
    assert "No single value is the cause" in page.text


def test_without_a_profile_rates_are_those_measured_here(material):
    page = Page(render(replace(material, profile=None)))
    assert page.faults == []
    assert "Firing rates over time" in page.text


def test_numbers_that_are_none_are_dashes(material):
    nan = float("nan")
    layers = [layer.model_copy(update={"rate_over_time": (0.1, nan)}) for layer in material.profile.layers]
    energy = material.profile.energy.model_copy(update={"total_nj": nan})
    exits = (EarlyExit(stop_at=0.5, accuracy=nan, mean_steps=nan),)
    odd = {"layers": tuple(layers), "energy": energy, "early_exit": exits, "ece": nan}
    text = render(replace(material, profile=material.profile.model_copy(update=odd)))
    page = Page(text)
    assert page.faults == []
    assert 'd="nan' not in text.lower()
    assert "nan" not in page.text.lower().split()


def test_warnings_are_shown(material):
    assert "weights <changed>" in Page(render(replace(material, warnings=("weights <changed>",)))).text


def test_samples_without_labels(material, model, samples):
    view = view_model(model)
    found = read_samples(samples, view.contract, 6)
    measured = measure(NumpyEngine(view.program), found._replace(labels=None), 2)
    page = Page(render(replace(material, measured=measured, profile=None)))
    assert page.faults == []
    assert "Confusion matrix" not in page.text
    assert "need samples with labels" in page.text
    assert "Decided:" in page.text


@pytest.mark.parametrize("which", ["ensemble", "images"])
def test_other_kinds_of_files(which, request):
    path = request.getfixturevalue(which)
    view = view_model(path)
    measured = measure(NumpyEngine(view.program), read_samples(path.parent / "samples.npz", view.contract, 9), 3)
    page = Page(render(Material(view, "now", measured=measured)))
    assert page.faults == []
    assert page.count("path", "spikes") == 3 * 2
    sliders = [tags for name, tags in page.tags if name == "input" and tags["aria-label"] == "Time step"]
    assert len(sliders) == (3 if which == "ensemble" else 0)


@pytest.mark.parametrize("steps", [390, 1200])
def test_long_and_wide_recordings_stay_below_three_megabytes(material, steps):
    page = render(replace(material, measured=enormous(material, steps=steps, neurons=400, shown=6)))
    assert len(page.encode()) < 3 * MEGABYTE
    assert Page(page).faults == []


def enormous(material: Material, *, steps: int, neurons: int, shown: int) -> Measured:
    """Half of all neurons fire in every step, all over a large sensor: the worst there is."""
    generator, classes = np.random.default_rng(0), len(material.model.contract.classes)
    spikes = {layer.name: generator.random((steps, neurons)) < 0.5 for layer in material.model.program.layers}
    frames = generator.integers(0, 2, (steps, 2, 64, 64), np.uint8)
    probabilities = generator.dirichlet(np.ones(classes), (shown, steps))
    samples = [Sample(n, n % classes, frames, probabilities[n], spikes, {}) for n in range(shown)]
    return Measured("worst", probabilities, np.arange(shown) % classes, {}, {}, {}, tuple(samples))


def test_one_accuracy_of_the_file_on_one_set_of_samples(material):
    """What verification, profile and contract say about the file is of other samples, or forged: it is not shown."""
    assert material.verify is not None
    assert material.profile is not None
    *others, own = material.model.contract.accuracy
    stated = (*others, own.model_copy(update={"accuracy": 0.1234, "interval": (0.1, 0.2)}))
    contract = material.model.contract.model_copy(update={"accuracy": stated})
    verified = (Accuracy(of="file", accuracy=0.4321, interval=(0.4, 0.5), samples=12, right=5, nll=1.0),)
    changed = replace(
        material,
        model=replace(material.model, program=replace(material.model.program, contract=contract)),
        verify=material.verify.model_copy(update={"accuracy": verified}),
        profile=material.profile.model_copy(update={"accuracy": 0.5678}),
    )
    right = (material.measured.final.argmax(1) == material.measured.labels).mean()
    page = Page(render(changed))
    assert changed.shipped.accuracy == right
    assert f"Accuracy {100 * right:.1f} %" in page.text
    assert f"all 8 steps: {100 * right:.1f} %" in page.text
    assert not any(figure in page.text for figure in ("12.3 %", "43.2 %", "56.8 %"))
    unmeasured = replace(changed, measured=None)
    assert unmeasured.shipped.on == "verified on 12 test samples"
    assert "all 8 steps" not in Page(render(unmeasured)).text
    assert replace(unmeasured, verify=None).shipped.on == "at export, on 12 test samples"
