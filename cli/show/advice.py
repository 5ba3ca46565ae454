"""What to do where the chosen collapse is worse than another way to run the same network."""

from __future__ import annotations

from collections.abc import Sequence

from axonnx.runtime.format.contract import AccuracyContract, Way
from axonnx.runtime.measure.ways import way_text

NOTABLE, BAD = 0.01, 0.05  # of the test samples
NOISY = (
    "its weights were not trained to be drawn: export with --collapse mfa, let σ shrink after training "
    "(--noise.temper 0.01), or train with noise (--variant.fire sample) and every batch in turn without "
    "(--noise.mean_field 0.5)"
)
TRAINED = (
    "train with noise that falls to zero (--noise.anneal 0.5), or with a closing mean-field phase (--finetune.epochs 3)"
)


def advice(scores: Sequence[AccuracyContract], mode: str, calibrated: bool) -> str | None:
    """Say what the file, the last of ``scores``, loses against the best way to run the network, and the remedy."""
    shipped, best = scores[-1], max(scores, key=lambda way: way.accuracy)
    lost = (best.right - shipped.right) / shipped.samples
    if lost <= NOTABLE:
        return None
    found = f"this file has {100 * shipped.accuracy:.1f} %, {way_text(best)} {100 * best.accuracy:.1f} %"
    head = "warning: this collapse is a bad choice" if lost > BAD else "the collapse costs accuracy"
    remedy = _other_collapse(scores) if mode == "mfa" and best.way != "unreduced" else ""
    return f"{head}: {found} ({100 * lost:.1f} points less). {remedy}{_remedy(mode, calibrated, best.way)}"


def _other_collapse(scores: Sequence[AccuracyContract]) -> str:
    """Name the best collapse that keeps noise or members, if it is notably better than this file."""
    others = [way for way in scores if way.way in ("sampled", "stochastic")]
    other = max(others, key=lambda way: way.accuracy, default=scores[-1])
    if other.right - scores[-1].right <= NOTABLE * other.samples:
        return ""
    return f"--collapse {other.way} has {100 * other.accuracy:.1f} %. "


def _remedy(mode: str, calibrated: bool, best: Way) -> str:
    if best == "unreduced":
        return "Prune less, or store weights in more bits"
    if mode != "mfa":
        return f"For better, {NOISY}" if best == "mean_field" else f"Another --collapse is better, or {TRAINED}"
    return TRAINED[0].upper() + TRAINED[1:] if calibrated else f"Try --calibrate; for good, {TRAINED}"
