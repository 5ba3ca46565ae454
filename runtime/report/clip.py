"""``decision_clip``: a recording through a file, its events and the decision as it forms, as one SVG that moves.

It needs no script and no request, and is small enough to mail. Style sheets move it, so a reader who asked for less
motion sees the last step, as does whoever prints it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.choose import measuring_engine
from axonnx.runtime.format.network_input import describe_input
from axonnx.runtime.measure.samples import Chosen, FirstWindows
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.readers import read_events
from axonnx.runtime.report.markup import Html, cut, element, svg_file
from axonnx.runtime.report.measure import measure
from axonnx.runtime.report.pictures import data_uri, faded, picture_levels
from axonnx.runtime.streams.adapt import Fit
from axonnx.runtime.streams.frame_files import read_frames

WIDTH, HEIGHT, SIDE, PAD = 640, 300, 240, 24
COLUMN, BAR, ROW = 2 * PAD + SIDE, 200, 20
MOST_STEPS, MOST_CLASSES, LONGEST = 120, 10, 16
MOVING = 0.75  # share of the time in which steps pass; the rest shows the decision
LOOK = """
.name{text-anchor:end}.label{font-size:26px;font-weight:650}.rail{fill:var(--line)}.bar{fill:var(--c0)}
.won .bar{fill:var(--c1)}.won text{font-weight:650}
"""
MOTION = """
@media(prefers-reduced-motion:reduce){*{animation:none!important}}
@media print{*{animation:none!important}}
"""


@dataclass(frozen=True, eq=False)
class Clip:
    """Frames [T, C, H, W], class probabilities after each of them [T, classes], and when each ends, in words."""

    title: str
    frames: NDArray[np.integer]
    probabilities: NDArray[np.float64]
    classes: tuple[str, ...]
    times: tuple[str, ...]


def decision_clip(
    program: Program, source: str | Path, *, index: int | None = None, fit: Fit | None = None, seed: int = 0
) -> str:
    """Return the text of an SVG file: the recording's first window, or one sample of frames, step by step."""
    contract, path = program.contract, Path(source)
    contract.needs_classes(program.name, "a moving picture")
    if contract.input.steps is None:
        taken = describe_input(contract.input)
        raise AxonnxError(f"{program.name}: takes {taken}, whose decision does not form in time; nothing would move")
    if contract.input.binning is None:
        frames = read_frames(path, contract.input)
        if not 0 <= (index or 0) < len(frames):
            raise AxonnxError(f"{path}: has no sample {index}; expected an index from 0 to {len(frames) - 1}")
        shown, ends = frames[index or 0], [f"step {step + 1} of {len(frames[0])}" for step in range(len(frames[0]))]
    else:
        recording = read_events(path, index=index)
        shown = FirstWindows(contract, fit or Fit()).frames(recording, str(path))
        bin_us = contract.input.binning.bin_us
        ends = [f"{(step + 1) * bin_us / 1e3:g} ms" for step in range(len(shown))]
    sample = measure(measuring_engine(program), Chosen(shown[np.newaxis], None, str(path)), 1, seed).shown[0]
    title = f"{path.name} through {program.name}"
    return animation(Clip(title, sample.frames, sample.probabilities, contract.classes, tuple(ends)))


def animation(clip: Clip, seconds: float = 5.0) -> str:
    """Return the text of an SVG file."""
    chosen = np.unique(np.linspace(0, len(clip.frames) - 1, min(MOST_STEPS, len(clip.frames))).round().astype(int))
    odds = clip.probabilities[chosen]
    winners = odds.argmax(1)
    shown = sorted(np.argsort(-odds.max(0), kind="stable")[:MOST_CLASSES].tolist())
    stage = _Stage(len(chosen), seconds)
    return svg_file(
        f"{clip.title}: decided for {clip.classes[int(winners[-1])]}",
        WIDTH,
        HEIGHT,
        _pictures(clip.frames, chosen, stage),
        element("text", clip.title, x=COLUMN, y=PAD + 8, class_="soft"),
        [_label(clip.classes[winner], first, last, stage) for winner, first, last in _stretches(winners)],
        [_odds(clip.classes[each], odds[-1, each], row, each, each == winners[-1]) for row, each in enumerate(shown)],
        [_time(clip.times[step], at, stage) for at, step in enumerate(chosen.tolist())],
        look=LOOK,
        motion=MOTION + stage.rules(odds, shown),
        fixed=False,
    )


class _Stage:
    """When each of so many steps is seen."""

    def __init__(self, steps: int, seconds: float) -> None:
        self.steps, self.seconds = steps, seconds

    def at(self, step: int) -> float:
        """When a step begins, in per cent of the time; the last one stays to the end."""
        return 100.0 if step >= self.steps else 100.0 * MOVING * step / self.steps

    def visible(self, first: int, last: int) -> dict[str, str]:
        """Attributes of what is seen from step ``first`` to ``last``; what lasts is what is seen without motion."""
        still = "" if last == self.steps - 1 else "opacity:0;"
        return {"style": f"{still}animation:s{first}-{last} {self.seconds:g}s step-end infinite"}

    def rules(self, odds: NDArray[np.float64], shown: Sequence[int]) -> str:
        """Key frames of all steps, of all stretches of one winner, and of all bars."""
        spans = {(step, step) for step in range(self.steps)}
        spans |= {(first, last) for _, first, last in _stretches(odds.argmax(1))}
        seen = [self._seen(first, last) for first, last in sorted(spans)]
        bars = [
            f"@keyframes b{each}{{{''.join(self._width(step, odds[step, each]) for step in range(self.steps))}"
            f"100%{{transform:scaleX({odds[-1, each]:.3f})}}}}"
            f".b{each}{{animation:b{each} {self.seconds:g}s linear infinite;transform-origin:{COLUMN + 100}px 0}}"
            for each in shown
        ]
        return "\n".join([*seen, *bars])

    def _seen(self, first: int, last: int) -> str:
        begin, end = self.at(first), self.at(last + 1)
        before = "0%{opacity:0}" if begin else ""
        after = f"{end:.3f}%{{opacity:0}}" if end < 100 else ""
        return f"@keyframes s{first}-{last}{{{before}{begin:.3f}%{{opacity:1}}{after}}}"

    def _width(self, step: int, share: float) -> str:
        return f"{self.at(step):.2f}%{{transform:scaleX({share:.3f})}}"


def _stretches(winners: NDArray[np.integer]) -> list[tuple[int, int, int]]:
    """Winner, first and last step of each stretch in which it leads."""
    found = []
    for winner, group in groupby(range(len(winners)), key=lambda step: int(winners[step])):
        steps = list(group)
        found.append((winner, steps[0], steps[-1]))
    return found


def _pictures(frames: NDArray[np.integer], chosen: NDArray[np.integer], stage: _Stage) -> Html:
    levels = picture_levels(faded(frames), 64)[chosen]
    height, width = levels.shape[1:]
    scale = SIDE / max(height, width)
    size = {"x": PAD, "y": PAD, "width": width * scale, "height": height * scale}
    images = [
        element("image", href=data_uri(each), preserveAspectRatio="none", **size, **stage.visible(step, step))
        for step, each in enumerate(levels)
    ]
    return element("g", element("rect", rx=6, class_="plain", **size), images)


def _label(name: str, first: int, last: int, stage: _Stage) -> Html:
    return element("text", cut(name, LONGEST), x=COLUMN, y=PAD + 40, class_="label", **stage.visible(first, last))


def _odds(name: str, share: float, row: int, number: int, won: bool) -> Html:
    y, x = PAD + 60 + row * ROW, COLUMN + 100
    bar = {"x": x, "y": y, "height": 12, "rx": 3}
    return element(
        "g",
        element("text", cut(name, LONGEST), x=x - 8, y=y + 11, class_="name"),
        element("rect", width=BAR, class_="rail", **bar),
        element("rect", width=BAR, class_=f"bar b{number}", transform=_still(share, x), **bar),
        class_="won" if won else None,
    )


def _still(share: float, x: float) -> str:
    """Return the last step's width, for readers that do not move."""
    return f"matrix({share:.3f} 0 0 1 {x * (1 - share):.1f} 0)"


def _time(text: str, at: int, stage: _Stage) -> Html:
    return element("text", text, x=PAD, y=HEIGHT - 10, class_="soft", **stage.visible(at, at))
