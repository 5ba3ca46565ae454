"""Axes: from values to a place between 0 and 1, and the round values that are written beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from axonnx.report.html.numbers import number

Write = Callable[[float], str]


@dataclass(frozen=True)
class Axis:
    """A stretch of values, its label and its ticks."""

    low: float
    high: float
    label: str = ""
    log: bool = False
    ticks: tuple[float, ...] = ()
    write: Write = field(default=number)

    def at(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high one."""
        low, high, here = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return (here - low) / (high - low)

    def shows(self, value: float) -> bool:
        """Whether the axis can show ``value``: a finite number, positive on a logarithmic axis."""
        return math.isfinite(value) and (not self.log or value > 0)


def linear_axis(
    values: Iterable[float], label: str = "", *, zero: bool = False, write: Write = number, wanted: int = 4
) -> Axis:
    """An axis over all finite values, its ends on round ones; of nothing, from 0 to 1."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = (low - 0.5, high + 0.5) if low or not zero else (0.0, 1.0)
    step = round_step((high - low) / wanted)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return Axis(low, high, label, ticks=_multiples(low, high, step), write=write)


def log_axis(values: Iterable[float], label: str = "", *, write: Write = number) -> Axis:
    """An axis of powers of ten over all positive values."""
    positive = [value for value in values if math.isfinite(value) and value > 0] or [1.0]
    first, last = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    last = max(last, first + 1)
    stride = max(1, math.ceil((last - first) / 5))
    ticks = tuple(10.0**power for power in range(first, last + 1, stride))
    return Axis(10.0**first, 10.0**last, label, log=True, ticks=ticks, write=write)


def share_axis(label: str = "", low: float = 0.0) -> Axis:
    """From ``low`` to all of it, in per cent."""
    step = next(step for step in (0.02, 0.05, 0.1, 0.25) if (1 - low) / step <= 5 + 1e-9)
    return Axis(low, 1.0, label, ticks=_multiples(low, 1.0, step), write=lambda value: f"{100 * value:.4g} %")


def count_axis(first: int, last: int, label: str, wanted: int = 6) -> Axis:
    """Whole numbers, as epochs or time steps."""
    step = max(1, int(round_step(max(last - first, 1) / wanted)))
    inner = [value for value in range(0, last + 1, step) if first < value <= last]
    if inner and inner[0] - first < step / 2:
        inner = inner[1:]
    low, high = (first, last) if first != last else (first - 0.5, first + 0.5)
    return Axis(low, high, label, ticks=(float(first), *map(float, inner)), write=lambda value: f"{value:.0f}")


def round_step(rough: float) -> float:
    """1, 2, 2.5 or 5 times a power of ten, at or above ``rough``."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * lead for lead in (1, 2, 2.5, 5, 10) if power * lead >= rough * (1 - 1e-9))


def _multiples(low: float, high: float, step: float) -> tuple[float, ...]:
    first = math.ceil(low / step - 1e-9)
    return tuple(step * at for at in range(first, math.floor(high / step + 1e-9) + 1))
