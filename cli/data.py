"""``axonnx data``: what stands at a path, before anything is trained."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import write_text
from axonnx.cli.show.live_view import picture_rows
from axonnx.report.pictures import contact_sheet
from axonnx.train.data.sets.looking import Look, look_at

SHOWN = 4  # classes that are drawn in a terminal


def main(arguments: Sequence[str]) -> int:
    """``axonnx data``."""
    options = make_parser().parse_args(arguments)
    look = look_at(options.path, options.limit)
    if options.output:
        draw(look, options.output)
    if options.json:
        print(json.dumps(facts(look)))
        return 0
    print("\n".join(_lines(look)))
    for label in [*look.pictures][:SHOWN] if options.pictures or sys.stdout.isatty() else []:
        rows = picture_rows(look.pictures[label][0])
        print(f"\n{label}: events from the middle of a recording (brighter, darker, both)", *rows, sep="\n")
    if options.output:
        print(f"\nwrote {options.output}: samples of {len(look.pictures)} classes; open it in a browser")
    print(f"\nto train on it:\n  {command(look)}")
    return 0


def draw(look: Look, output: str) -> None:
    """Samples of each class as an SVG file."""
    if not output.endswith(".svg"):
        raise AxonnxError(
            f"{output}: samples are drawn as SVG; name the file {output.rpartition('.')[0] or output}.svg"
        )
    if not look.pictures:
        raise AxonnxError(f"{look.name}: has no sample to draw")
    write_text(output, contact_sheet(look.name, look.pictures))


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx data",
        description="Show what recordings, frames or a data set hold: formats, sensor, lengths, events, classes, some "
        "samples; and a command that trains on them.",
    )
    parser.add_argument(
        "path", help="a folder of recordings by class, a recording, an npz of frames, or a data set's name"
    )
    parser.add_argument("--limit", type=int, default=200, help="recordings of a folder to read (default: %(default)s)")
    parser.add_argument("--pictures", action="store_true", help="draw some samples, also where this is no terminal")
    parser.add_argument("-o", "--output", metavar="SVG", help="draw samples of each class into this file")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object")
    return parser


def command(look: Look) -> str:
    """A command that trains on this data."""
    base = "digits-saccade" if look.kind == "events" else "FILE.toml"
    plain = {key: f"{v:g}" if isinstance(v, float) else str(v) for key, v in look.settings().items()}
    words = [f"--{key} {shlex.quote(value)}" for key, value in plain.items()]
    return " ".join(["axonnx train", base, *words, "--out runs/mine"])


def facts(look: Look) -> dict[str, object]:
    """For other programs."""
    keys = ("name", "kind", "classes", "recordings", "read", "formats", "sensor", "reaches", "shape", "notes")
    found: dict[str, object] = {key: getattr(look, key) for key in keys}
    if look.kind == "events":
        found |= {"length_us": _quartiles(look.lengths), "events": _quartiles(look.events), "brighter": look.brighter}
    return {**found, "settings": look.settings()}


def _quartiles(values: NDArray[np.int64]) -> list[float]:
    """Least, median, largest."""
    return [float(np.quantile(values, q)) for q in (0.0, 0.5, 1.0)] if len(values) else []


def _lines(look: Look) -> list[str]:
    some = "" if look.read >= look.recordings else f", of which {look.read} were read"
    lines = [f"{look.name}: {look.kind}, {len(look.classes)} classes, {look.recordings:,} samples{some}"]
    if look.kind == "events":
        lines += _of_events(look)
    else:
        lines.append(f"  shape         {list(look.shape or ())}")
    most = max(len(name) for name in look.classes)
    lines += [f"  class {name:<{most}}  {count:>6}" for name, count in look.classes.items()]
    return [*lines, *(f"  note: {note}" for note in look.notes)]


def _of_events(look: Look) -> list[str]:
    width, height = look.sensor or look.reaches
    stated = "as the files state" if look.sensor else "as far as events reach; the files do not say"
    lines = [
        f"  formats       {', '.join(f'{name} ({count})' for name, count in look.formats.items())}",
        f"  sensor        {width}×{height}, {stated}",
    ]
    if len(look.events) == 0:
        return lines
    low, middle, high = (value / 1000 for value in _quartiles(look.lengths))
    few, usual, many = _quartiles(look.events)
    rate = usual / max(middle, 1e-9) * 1000
    return [
        *lines,
        f"  length        {low:,.1f} … {high:,.1f} ms, median {middle:,.1f}",
        f"  events        {few:,.0f} … {many:,.0f} in a recording, median {usual:,.0f}; {rate:,.0f} a second, "
        f"{rate / (width * height):.3g} a second and pixel; {100 * look.brighter:.0f} % brighter",
    ]
