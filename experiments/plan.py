"""What an experiment is: cases that are compared, scales they are run at, claims that they decide."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from importlib.resources import files
from typing import Literal

from pydantic import Field, PositiveInt

from axonnx.base.errors import AxonnxError
from axonnx.train.config.read import merged, shipped
from axonnx.train.config.settings import Section
from axonnx.train.shared_records import Job, Tree

Scale = Literal["paper", "cpu", "quick"]


class Case(Section):
    """One row of the table: what it changes in the configuration, and options of the measure."""

    name: str
    set: str | None = Field(default=None, description="which of the scale's data sets")
    settings: Tree = Field(default={})
    options: Tree = Field(default={})


class DataSet(Section):
    """Settings of one of several data sets; seed s adds fold s, e.g. the people that it is tested on."""

    settings: Tree = Field(default={})
    folds: tuple[Tree, ...] = ()

    def of(self, seed: int) -> Tree:
        """Return the settings of a seed."""
        return merged(self.settings, self.folds[seed % len(self.folds)]) if self.folds else self.settings


class Size(Section):
    """One scale: the configuration all cases share, how many seeds, and what it costs."""

    configuration: str | None = Field(default=None, description="a shipped configuration to begin with")
    settings: Tree = Field(default={})
    options: Tree = Field(default={})
    sets: dict[str, DataSet] = Field(default={}, description="data sets that cases name")
    seeds: PositiveInt = 3
    about: str


class Claim(Section):
    """A sentence that the records confirm, refute or leave open.

    ``higher``: the first case has more of ``figure`` than the second. ``equal``: they differ by less than ``margin``.
    """

    text: str
    first: str
    second: str
    figure: Literal["accuracy", "nll", "aurc"] = "accuracy"
    paired: bool = Field(default=False, description="compare seed by seed: both cases saw the same people")
    expect: Literal["higher", "equal"] = "higher"
    margin: float = Field(default=0.02, gt=0)


class Plan(Section):
    """A whole experiment."""

    title: str
    about: str
    measure: Literal["training", "gradients", "uncertainty", "deployed", "worth"]
    figure: Literal["curves", "layers", "bias", "rejection", "pareto", "worth"]
    scales: dict[Scale, Size]
    cases: tuple[Case, ...]
    claims: tuple[Claim, ...] = ()


def plan_names() -> list[str]:
    """All plans, in the order in which they are meant to be read."""
    found = [path.name for path in files("experiments").joinpath("plans").iterdir()]
    names = sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))
    return sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


ORDER = (
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
    "worth",
    "recipes",
    "collapses",
)


def read_plan(name: str) -> Plan:
    """Return the plan of that name."""
    known = plan_names()
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise AxonnxError(f"unknown experiment {name!r}; known are {', '.join(known)}.{hint}")
    text = files("experiments").joinpath("plans", f"{name}.toml").read_text("utf-8")
    plan = Plan.model_validate(tomllib.loads(text))
    names = [case.name for case in plan.cases]
    assert len(set(names)) == len(names), f"{name}: two cases have the same name"
    for claim in plan.claims:
        assert {claim.first, claim.second} <= set(names), f"{name}: {claim.text!r} is about unknown cases"
    return plan


def jobs_of(plan: Plan, scale: Scale, at_least: int = 1) -> Iterator[Job]:
    """Every case with every seed, seed by seed: a table is there early, its standard deviations come later."""
    size = size_of(plan, scale)
    begin = {} if size.configuration is None else shipped()[size.configuration]["tree"]
    for seed in range(max(size.seeds, at_least)):
        for case in plan.cases:
            own = {} if case.set is None else size.sets[case.set].of(seed)
            settings = merged(merged(merged(begin, size.settings), own), case.settings)
            yield Job(case.name, seed, merged(settings, {"seed": seed}), merged(size.options, case.options))


def size_of(plan: Plan, scale: Scale) -> Size:
    """Return the scale's settings."""
    if scale not in plan.scales:
        raise AxonnxError(f"this experiment has no scale {scale!r}; it has {', '.join(plan.scales)}")
    return plan.scales[scale]
