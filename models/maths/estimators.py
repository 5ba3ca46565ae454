"""Gradient estimators: what the backward pass puts in the place of the derivative of a step.

With z = (h* − θ)/κ and F = Φ(z) the expected spike has ∂F/∂h* = φ(z)/κ and ∂F/∂κ = −z φ(z)/κ. An estimator
multiplies both with a factor that depends on the spike that was drawn. A new estimator is one class with one
method, ``slope``: factor · φ(z).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from axonnx.models.maths import normal
from axonnx.models.maths.firing import decide


class Estimator(ABC):
    """Fires neurons, and says which slopes stand for the derivative of their decision."""

    known: ClassVar[dict[str, type[Estimator]]] = {}
    name: ClassVar[str]
    reads_noise: ClassVar[bool] = True  # whether ``slope`` does; if not, it need not be kept for the backward pass

    def __init_subclass__(cls, name: str, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = name
        Estimator.known[name] = cls

    @abstractmethod
    def slope(self, z: Tensor, spikes: Tensor, noise: Tensor | None) -> Tensor:
        """Return factor · φ(z), finite for every z; ``noise`` is the ε that was drawn (None: mean-field, ε = 0)."""

    def output(self, gap: Tensor, variance: Tensor | None, noise: Tensor | None) -> Tensor:
        """Return what the neurons emit in the forward pass: binary spikes."""
        return decide(gap, variance, noise)

    def slopes(
        self, gap: Tensor, variance: Tensor | None, spikes: Tensor, noise: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return ∂o/∂h* and ∂o/∂κ² for the backward pass; zero where a neuron has no noise."""
        if variance is None:
            raise ValueError(f"estimator {self.name!r} needs weights with a posterior; without one use 'sg'")
        z, std, noisy = normal.standardise(gap, variance)
        by_membrane = torch.where(noisy, self.slope(z, spikes, noise) / std, 0.0)
        return by_membrane, -0.5 * z * by_membrane / std

    def fire(self, gap: Tensor, variance: Tensor | None, noise: Tensor | None = None) -> Tensor:
        """Return spikes of neurons with h* − θ = ``gap`` and noise variance κ², with this estimator's gradient."""
        if variance is not None:
            variance = variance.expand_as(gap)
        spikes: Tensor = _Fire.apply(gap, variance, noise, self)
        return spikes


class _Fire(torch.autograd.Function):
    """The step in the forward pass, an estimator's slopes in the backward pass."""

    @staticmethod
    def forward(ctx: Any, gap: Tensor, variance: Tensor | None, noise: Tensor | None, estimator: Estimator) -> Tensor:
        spikes = estimator.output(gap, variance, noise)
        ctx.estimator = estimator
        ctx.save_for_backward(gap, variance, noise, spikes)
        return spikes

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        gap, variance, noise, spikes = ctx.saved_tensors
        by_membrane, by_variance = ctx.estimator.slopes(gap, variance, spikes, noise)
        return grad * by_membrane, None if by_variance is None else grad * by_variance, None, None


@dataclass(frozen=True)
class StraightThrough(Estimator, name="st"):
    """The classical straight-through estimator: factor 1."""

    reads_noise: ClassVar[bool] = False

    def slope(self, z: Tensor, spikes: Tensor, noise: Tensor | None) -> Tensor:
        """Return φ(z)."""
        return normal.pdf(z)


def firing_probability(F: Tensor) -> Tensor:
    """Return p = F, which makes IW-ST the straight-through estimator."""
    return F


def low_variance(F: Tensor) -> Tensor:
    """Return p = 1[F > ½], the end of the low-variance interval of Propositions 3 and 4."""
    return (F > 0.5).to(F.dtype)


MIXINGS: dict[str, Callable[[Tensor], Tensor]] = {"F": firing_probability, "low_variance": low_variance}


@dataclass(frozen=True)
class ImportanceWeighted(Estimator, name="iwst"):
    """IW-ST(p): factor (p/F)^o ((1−p)/(1−F))^(1−o).

    ``p`` is a number (0, 1, or 0.5, the low-bias trapezoid rule), "low_variance", "F", or any function of F.
    """

    reads_noise: ClassVar[bool] = False

    p: float | Literal["F", "low_variance"] | Callable[[Tensor], Tensor] = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.p, str) and self.p not in MIXINGS:
            raise ValueError(f"iwst: p is {self.p!r}; known are a number in [0, 1], {sorted(MIXINGS)}, a function of F")
        if isinstance(self.p, int | float) and not 0.0 <= self.p <= 1.0:
            raise ValueError(f"iwst: p is {self.p}; expected a number in [0, 1]")

    def _mixing(self, F: Tensor) -> Tensor:
        if isinstance(self.p, str):
            return MIXINGS[self.p](F)
        return self.p(F) if callable(self.p) else torch.full_like(F, self.p)

    def slope(self, z: Tensor, spikes: Tensor, noise: Tensor | None) -> Tensor:
        """Return (p/F) φ(z) or ((1−p)/(1−F)) φ(z), by the inverse Mills ratio φ/F, which no tail makes underflow."""
        F = normal.cdf(z)
        p = self._mixing(F)
        fired = spikes > 0.5
        weighted = torch.where(fired, p, 1.0 - p) * normal.inverse_mills(torch.where(fired, z, -z))
        if self.p == "F" or callable(self.p):
            return torch.where(p == F, normal.pdf(z), weighted)  # p = F is straight-through, to the bit
        return weighted


@dataclass(frozen=True)
class AnalyticGumbelRao(Estimator, name="agr"):
    """AGR(k): factor ((S(F)−S(0))/F)^o ((S(0)−S(F−1))/(1−F))^(1−o), S(x) = sigmoid(x/k)."""

    reads_noise: ClassVar[bool] = False

    k: float = 1.0

    def __post_init__(self) -> None:
        _check_temperature(self.name, self.k)

    def slope(self, z: Tensor, spikes: Tensor, noise: Tensor | None) -> Tensor:
        """Return φ(z) · tanh(P/2k)/(2P) with P the probability of what was drawn; S(x)−½ = ½ tanh(x/2k)."""
        P = normal.cdf(torch.where(spikes > 0.5, z, -z))
        usual = P > 1e-30
        safe = torch.where(usual, P, torch.ones_like(P))
        factor = torch.where(usual, torch.tanh(safe / (2 * self.k)) / (2 * safe), 1.0 / (4 * self.k))
        return factor * normal.pdf(z)


Noise = Literal["uniform", "logistic"]


def relaxation(z: Tensor, noise: Tensor | None, kind: Noise) -> tuple[Tensor, Tensor]:
    """Return the argument x of the relaxed step S_k(x), and dx/dF · φ(z).

    Uniform: x = F − 1 + u. Logistic: x = ln(F/(1−F)) + η. Both with the u = Φ(ε) that drew the spike, so
    that x ≥ 0 exactly where it fired.
    """
    epsilon = torch.zeros_like(z) if noise is None else noise
    if kind == "uniform":
        return normal.cdf(z) - normal.cdf(-epsilon), normal.pdf(z)
    # φ / (F (1−F)), by the inverse Mills ratio of the rarer outcome.
    return normal.logit_cdf(z) + normal.logit_cdf(epsilon), normal.inverse_mills(-z.abs()) / normal.cdf(z.abs())


def sigmoid_slope(x: Tensor, k: float) -> Tensor:
    """Return S_k'(x) = S(1 − S)/k."""
    s = torch.sigmoid(x / k)
    return s * (1.0 - s) / k


@dataclass(frozen=True)
class GumbelSoftmaxST(Estimator, name="gs_st"):
    """GS-ST(k): binary forward, factor S_k'(F−1+u) with the u that drew the spike."""

    k: float = 1.0
    noise: Noise = "uniform"

    def __post_init__(self) -> None:
        _check_temperature(self.name, self.k)
        if self.noise not in ("uniform", "logistic"):
            raise ValueError(f"{self.name}: noise is {self.noise!r}; known are 'uniform' and 'logistic'")

    def slope(self, z: Tensor, spikes: Tensor, noise: Tensor | None) -> Tensor:
        """Return S_k'(x) dx/dF φ(z)."""
        x, chain = relaxation(z, noise, self.noise)
        return sigmoid_slope(x, self.k) * chain


@dataclass(frozen=True)
class GumbelSoftmax(GumbelSoftmaxST, name="gs"):
    """GS(k): as ``gs_st``, but what flows forward is the relaxed s = S_k(F−1+u) itself.

    A mean-field pass, the one that is deployed, is binary.
    """

    def output(self, gap: Tensor, variance: Tensor | None, noise: Tensor | None) -> Tensor:
        """Return s = S_k(x) where there is noise, and the binary decision elsewhere."""
        if variance is None or noise is None:
            return decide(gap, variance, noise)
        z, _, noisy = normal.standardise(gap, variance)
        x, _ = relaxation(z, noise, self.noise)
        return torch.where(noisy, torch.sigmoid(x / self.k), decide(gap, variance, noise))


@dataclass(frozen=True)
class GumbelRao(Estimator, name="gr"):
    """GR(k, n): E[S_k'(ln(F/(1−F)) + η) | o], by ``n`` Monte Carlo samples of the truncated logistic noise."""

    reads_noise: ClassVar[bool] = False

    k: float = 1.0
    n: int = 10

    def __post_init__(self) -> None:
        _check_temperature(self.name, self.k)
        if self.n < 1:
            raise ValueError(f"gr: n is {self.n}; expected at least one sample")

    def slope(self, z: Tensor, spikes: Tensor, noise: Tensor | None) -> Tensor:
        """Return the mean over n of S_k'(x) φ/(F(1−F)), with x given the spike that was drawn."""
        signed = torch.where(spikes > 0.5, z, -z)  # S_k' is even, so both outcomes are one case
        odds = torch.exp(normal.logit_cdf(signed).clamp(max=80.0))
        _, chain = relaxation(z, None, "logistic")
        total = torch.zeros_like(z)
        for _ in range(self.n):
            # |x| = ln((1 + v·odds)/(1 − v)) inverts the logistic CDF truncated to the outcome.
            v = torch.rand_like(z).clamp(min=1e-7, max=1.0 - 1e-7)
            total += sigmoid_slope(torch.log1p(v * (1.0 + odds) / (1.0 - v)), self.k)
        return total / self.n * chain


@dataclass(frozen=True)
class SurrogateGradient(Estimator, name="sg"):
    """SG(width): the baseline. A Normal pdf of fixed std ``width`` in the place of φ(z)/κ."""

    reads_noise: ClassVar[bool] = False

    width: float = 0.4

    def __post_init__(self) -> None:
        if not self.width > 0:
            raise ValueError(f"sg: width is {self.width}; expected a positive number")

    def slope(self, z: Tensor, spikes: Tensor, noise: Tensor | None) -> Tensor:
        """Return φ(z)."""
        return normal.pdf(z)

    def slopes(self, gap: Tensor, variance: Tensor | None, spikes: Tensor, noise: Tensor | None) -> tuple[Tensor, None]:
        """Return φ((h*−θ)/width)/width; there is no gradient for a variance."""
        return self.slope(gap / self.width, spikes, noise) / self.width, None


def make_estimator(name: str, **options: Any) -> Estimator:
    """Make the estimator called ``name``, e.g. ``make_estimator("agr", k=0.2)``."""
    if name not in Estimator.known:
        raise ValueError(f"unknown estimator {name!r}; known are {sorted(Estimator.known)}")
    kind: Any = Estimator.known[name]
    takes = sorted(f.name for f in fields(kind))
    if unknown := sorted(set(options) - set(takes)):
        raise ValueError(f"estimator {name!r} has no option {unknown[0]!r}; it takes {takes or 'none'}")
    made: Estimator = kind(**options)
    return made


def _check_temperature(name: str, k: float) -> None:
    if not k > 0:
        raise ValueError(f"{name}: temperature k is {k}; expected a positive number")
