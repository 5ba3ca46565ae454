"""Numbers for people. What is not a number, or was not measured, is a dash, never a zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

DASH = "–"
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))


def known(value: float | None) -> bool:
    """Whether there is a number to show."""
    return value is not None and math.isfinite(value)


def percent(share: float | None, digits: int = 1) -> str:
    """0.1234 as 12.3 %."""
    return f"{100 * share:.{digits}f} %" if share is not None and math.isfinite(share) else DASH


def interval(bounds: Sequence[float] | None) -> str:
    """(0.9, 0.95) as 90.0 – 95.0 %."""
    if bounds is None or len(bounds) != 2 or not all(math.isfinite(bound) for bound in bounds):
        return DASH
    return f"{100 * bounds[0]:.1f} – {100 * bounds[1]:.1f} %"


def count(number: float | None) -> str:
    """12345 as 12,345."""
    return f"{number:,.0f}" if number is not None and math.isfinite(number) else DASH


def short(number: float | None) -> str:
    """Four figures at the most, thousands and millions by letter: 12.3 k."""
    if number is None or not math.isfinite(number):
        return DASH
    if abs(number) < 10_000:
        return f"{number:,.0f}" if number == round(number) or abs(number) >= 100 else f"{number:.3g}"
    return si(number, "").strip()


def si(number: float | None, unit: str) -> str:
    """Three figures with a prefix: 1.23 µJ."""
    if number is None or not math.isfinite(number):
        return DASH
    if number == 0:
        return f"0 {unit}".rstrip()
    scale, prefix = next((entry for entry in PREFIXES if abs(number) >= entry[0] * 0.9995), PREFIXES[-1])
    figure = number / scale
    digits = 0 if abs(figure) >= 99.95 else 1 if abs(figure) >= 9.995 else 2
    return f"{figure:.{digits}f} {prefix}{unit}".rstrip()


def energy(nanojoule: float | None) -> str:
    """Joules with a prefix."""
    return DASH if nanojoule is None else si(nanojoule * 1e-9, "J")


def size(bytes_: float | None) -> str:
    """Bytes with a decimal prefix."""
    return si(bytes_, "B")


def number(value: float | None) -> str:
    """Four significant figures."""
    return f"{value:.4g}" if value is not None and math.isfinite(value) else DASH


def power_of_two(exponent: int) -> str:
    """−17 as 2⁻¹⁷."""
    return "2" + str(exponent).translate(SUPERSCRIPT)
