"""The check of the collapse by itself: right files of every kind pass, and its bounds are neither loose nor guessed."""

from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch

from axonnx.export.collapsed import CollapseSettings, collapse_network
from axonnx.export.contract import make_contract
from axonnx.export.verify.collapse_check import CollapseCheck, posteriors
from axonnx.export.verify.grids import coarsest, probe
from axonnx.export.write import build_model
from axonnx.models import Network
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.format.model_file import ModelFile
from axonnx.runtime.measure.verify_result import Paired

from ..cases import CASES, Case
from ..own_networks import TwoBranches
from ..small_networks import Recipe, build, counts, input_of

SOME = CASES[::4]


def check_of(network: Network, arriving: InputContract, settings: CollapseSettings) -> CollapseCheck:
    """A file made of ``network``, held against it on some input."""
    collapsed = collapse_network(network, arriving, settings)
    classes = tuple(f"class {n}" for n in range(collapsed.members[0].network.readout.bias.numel()))
    contract = make_contract(collapsed, classes, "sequence")
    file = ModelFile(build_model(collapsed, contract), contract, Path("made.onnx"))
    check = CollapseCheck(file, network, arriving, {})
    check.constants()
    x = counts(arriving, 3, 25)
    random = np.random.default_rng(0)
    lead = x.shape[:2] if arriving.steps else x.shape[:1]
    noises = {layer.noise: layer.shape for layer in contract.layers if layer.noise}
    check.running(x, {name: random.standard_normal((*lead, *s), np.float32) for name, s in noises.items()}, 0)
    return check


@pytest.mark.parametrize("prune", [None, 0.5], ids=["whole", "pruned"])
@pytest.mark.parametrize("case", SOME, ids=str)
def test_right_files_of_every_kind_pass(case: Case, prune):
    torch.manual_seed(0)
    settings = CollapseSettings(case.mode, case.members, 3, prune, case.stored)
    found = check_of(build(case.recipe), input_of(case.recipe), settings).found
    assert found.faults == []
    assert min(found.constants, found.membranes, found.spikes, found.logits) > 0
    assert found.largest <= 1.0


def test_networks_of_ones_own_pass():
    torch.manual_seed(1)
    arriving = InputContract(name="events", shape=(2, 8, 8), steps=25, largest=3)
    for mode in ("mfa", "stochastic"):
        found = check_of(TwoBranches().eval(), arriving, CollapseSettings(mode)).found
        assert found.faults == []
        assert found.membranes > 0


def test_draws_in_which_mean_and_noise_cancel_pass():
    """What is left of m + σ ε is small; its rounding is that of the large terms."""
    network, generator = build(Recipe()), torch.Generator().manual_seed(3)
    with torch.no_grad():
        for posterior in posteriors(network):
            noise = torch.randn(posterior.raw_mean.shape, generator=generator)
            posterior.raw_mean.mul_(1e-3).sub_(torch.exp(posterior.log_std) * noise)
    found = check_of(network, input_of(Recipe()), CollapseSettings("sampled", 1, 3)).found
    assert found.faults == []


def test_the_bound_is_of_the_size_of_what_rounding_does():
    """A bound far above what is ever reached would hide faults."""
    found = check_of(build(Recipe(weights="trained")), input_of(Recipe()), CollapseSettings()).found
    assert found.largest > 0.05


@pytest.mark.parametrize("case", [case for case in SOME if case.mode == "mfa"], ids=str)
def test_the_coarsest_grid_that_passes_is_the_exporters_or_one_step_from_it(case: Case):
    network, arriving = build(case.recipe), input_of(case.recipe)
    check = check_of(network, arriving, CollapseSettings(case.mode, case.members, 3, None, case.stored))
    member, expected = check.members[""], check.expected[""]
    seen = probe(member, arriving, member(counts(arriving, 2, 5).double()))
    for weight, grid in check.grids.items():
        assert grid - 1 <= coarsest(expected, seen, case.stored, weight) <= grid


@pytest.mark.parametrize(("file", "training"), [(0, 0), (1, 0), (0, 5), (0, 6), (3, 12), (40, 41)])
def test_the_paired_test_is_the_binomial_one(file, training):
    found = Paired(samples=100, only_file=file, only_training=training).p_value
    trials = file + training
    assert found == pytest.approx(scipy.stats.binomtest(file, trials).pvalue if trials else 1.0)
