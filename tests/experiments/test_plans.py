"""Plans: every one of them can be carried out, at every scale."""

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.train.build import make_variant
from axonnx.train.config.read import check_config
from experiments.plan import jobs_of, plan_names, read_plan, size_of

ALL = plan_names()


def test_the_papers_experiments_are_all_there():
    assert ALL == [
        "cifar10",
        "cifar10-deep",
        "dvs-gesture",
        "shd-regenerated",
        "estimators",
        "estimator-bias",
        "vanishing-gradients",
        "depth",
        "self-tuning",
        "granularity",
        "uncertainty",
        "recipes",
        "collapses",
    ]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("scale", ["paper", "cpu", "quick"])
def test_every_job_is_a_valid_run_and_differs_from_all_others(name, scale):
    plan = read_plan(name)
    jobs = list(jobs_of(plan, scale))
    assert len(jobs) == size_of(plan, scale).seeds * len(plan.cases)
    assert len({job.digest for job in jobs}) == len(jobs)
    for job in jobs:
        if plan.measure != "gradients":
            config = check_config(job.settings, name)
            assert config.seed == job.seed
            make_variant(config.variant)


@pytest.mark.parametrize("name", ALL)
def test_tables_have_three_seeds_and_trying_out_needs_no_data(name):
    plan = read_plan(name)
    assert plan.scales["cpu"].seeds >= 3
    for job in jobs_of(plan, "quick"):
        assert job.settings.get("data", {}).get("name", "digits").startswith("digits")


def test_the_paper_scale_is_the_papers_configuration():
    settings = next(iter(jobs_of(read_plan("cifar10"), "paper"))).settings
    assert settings["optimiser"]["epochs"] == 200
    assert settings["model"]["widths"] == [64, 128, 256, 512]


def test_regenerated_digits_are_not_called_shd():
    plan = read_plan("shd-regenerated")
    assert "regenerated" in plan.title
    assert "regenerated" in plan.scales["cpu"].about


def test_an_unknown_experiment_is_answered_with_the_nearest():
    with pytest.raises(AxonnxError, match=r"unknown experiment 'recipe'.*Did you mean 'recipes'"):
        read_plan("recipe")
