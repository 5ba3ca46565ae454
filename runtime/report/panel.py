"""The panel: its markup, the network as a script, for which networks there is one, and a page of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.codegen.js.module_text import library, script_text
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.report.markup import Html, document, element, missing, odds, player, section, size
from axonnx.runtime.report.material import Material

MOST_BYTES = 3_000_000  # of a network's script in a page
ODDS = 24  # classes with a row of their own
MOST_LAYERS = 6  # with a raster
MOST_NUMBERS = 40_000  # of all examples together: keeps a page small
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
NOT_DRAWABLE = "The input of this network is neither a picture nor events, so it cannot be drawn."
HINTS = {
    "camera": "Draw on the sensor, large, or drop a recording here.",
    "paint": "Paint spikes (time goes to the right, channels upwards), or drop a recording here.",
    "image": "Draw a picture.",
}


class Surface(NamedTuple):
    """What one draws on: the sensor of a camera, time and channels, or a picture."""

    kind: Literal["camera", "paint", "image"]
    width: int
    height: int


class Example(NamedTuple):
    """A sample that a reader can run at a click, under the name of its class."""

    name: str
    frames: NDArray[np.integer]  # [T, …]


def try_page(program: Program) -> str:
    """Return a page to try a network on: the text of an HTML file with the panel, and nothing else."""
    place, contract = surface(program.contract), program.contract
    lead = f"A {contract.kind} network for {len(contract.classes)} classes, in this page alone: nothing leaves it."
    body = panel(program, place, live_script(program)) if place else element("p", NOT_DRAWABLE, class_="missing")
    main = element("main", element("h1", program.name), element("p", lead, class_="lead"), body)
    return document(f"{program.name}: try it", POLICY, main)


def surface(contract: Contract) -> Surface | None:
    """How a network can be drawn for; None where its input is no picture, no events and no channels over time."""
    entering = contract.input
    if entering.binning is not None:
        sensor = entering.binning.sensor
        return Surface("camera" if sensor.height > 1 else "paint", sensor.width, sensor.height)
    if len(entering.shape) != 3 or min(entering.shape[1:]) < 2:
        return None
    channels, height, width = entering.shape
    if contract.kind == "binary":
        return Surface("image", width, height) if channels in (1, 3) else None
    return Surface("camera", width, height) if channels in (1, 2) and entering.centre == 0 else None


def panel(program: Program, place: Surface, script: str, examples: Sequence[Example] = ()) -> list[Html]:
    """Markup and scripts; nothing is shown where scripts do not run."""
    kind, hint = place.kind, HINTS[place.kind]
    about = f"The sensor, {place.width} × {place.height} pixels" if kind == "camera" else "What is drawn"
    slider = player(program.contract.input.steps or 1, 0, "Time step of the live panel", button=False)
    left = element(
        "div",
        element("p", hint, class_="told", aria_live="polite"),
        element("canvas", class_=f"sensor {kind}", role="img", aria_label=f"{about}: draw here"),
        _buttons(kind),
        _examples(examples),
        _camera(program.contract) if kind == "camera" else None,
        element("div", slider, hidden=kind == "image"),
        _odds(program.contract.classes),
        class_="left",
    )
    shown = element(
        "div",
        left,
        element("div", _strips(program, kind), class_="right"),
        class_="card live",
        hidden=True,
        data_kind=kind,
        data_sensor=f"{place.width}x{place.height}",
        data_hint=hint,
    )
    return [shown, element("script", Html(script))]


def live_script(program: Program) -> str:
    """Return the network, readers of recordings and the panel in a function of their own."""
    parts = [part(name) for name in ("camera.js", "canvas.js", "panel.js")]
    network = "{ contract, create, binRecording, countEvents, readRecording, fitRecording }"
    body = "\n".join([script_text(program), library("recordings.js"), *parts])
    return f"(() => {{\n'use strict';\n{body}\nlive(document.querySelector('.live'), {network});\n}})();\n"


def part(name: str) -> str:
    """Return a file of the panel's script."""
    return resources.files("axonnx.runtime.report").joinpath(name).read_text("utf-8")


def _buttons(kind: str) -> Html:
    opener = element(
        "label",
        "Open a recording …",
        element("input", type="file", class_="hidden", aria_label="Open a recording: npz, csv, EVT 2.0, DAT, N-MNIST"),
        class_="button",
    )
    return element(
        "div",
        element("button", "▶ Play", type="button", data_do="play"),
        element("button", "Clear", type="button", data_do="clear"),
        None if kind == "image" else opener,
        class_="buttons",
    )


def _camera(contract: Contract) -> Html:
    """Choose between a moving and a still camera; data sets of recorded pictures were made with a moving one."""
    moving = any(word in (contract.provenance.data or "") for word in ("saccade", "nmnist", "digits"))
    ways = {
        "moves": ("The camera moves over the drawing", moving),
        "still": ("The camera stands still and sees the pen", not moving),
    }
    choices = [
        element("label", element("input", type="radio", name="camera", value=way, checked=on, aria_label=told), told)
        for way, (told, on) in ways.items()
    ]
    return element("div", choices, class_="buttons", role="group", aria_label="Camera")


def _odds(classes: tuple[str, ...]) -> Html:
    shown = classes if len(classes) <= ODDS else classes[:10]  # the script gives the rows to the likeliest
    rows = [(number, name, 0.0, "c0") for number, name in enumerate(shown)]
    return odds(rows, "Class probabilities, live", longest=max(map(len, classes)))


def _strips(program: Program, kind: str) -> list[Html]:
    """Input, rasters of some layers of the first member, decision; of an image, which has no time, layers alone."""
    own = max(1, len(program.layers) // program.contract.collapse.members)
    step = max(1, -(-own // MOST_LAYERS))
    layers = [number for number in range(0, own, step) if program.layers[number].name != "readout"]
    rasters = [_strip(program.layers[number].name, "raster", number) for number in layers]
    if kind == "image":
        return rasters
    return [_strip("Input", "bars"), *rasters, _strip("Decision: class probabilities", "lines")]


def _strip(name: str, kind: str, layer: int | None = None) -> Html:
    canvas = element("canvas", role="img", aria_label=name, class_=kind, data_layer=layer)
    return element("div", element("p", name), element("div", canvas, class_="band still"), class_="strip")


def _examples(samples: Sequence[Example]) -> list[Html]:
    """Buttons and the frames behind them; samples that a page has no room for are left out."""
    lists: list[list[list[int]]] = []
    buttons: list[Html] = []
    room = MOST_NUMBERS
    for name, frames in samples:
        sparse = [_sparse(frame) for frame in frames]
        room -= sum(map(len, sparse))
        if room < 0:
            break
        told = f"Run a sample of class {name} of the test data"
        buttons.append(element("button", name, type="button", data_example=len(lists), aria_label=told, title=told))
        lists.append(sparse)
    if not lists:
        return []
    data = Html(json.dumps(lists, separators=(",", ":")))
    group = element("div", element("span", "Samples:"), buttons, class_="buttons", role="group", aria_label="Samples")
    return [group, element("script", data, type="application/json", class_="examples")]


def _sparse(frame: NDArray[np.integer]) -> list[int]:
    """Place, value, place, value, … of what is not zero."""
    flat = frame.ravel()
    places = np.flatnonzero(flat)
    pairs: list[int] = np.stack([places, flat[places]], axis=1).ravel().tolist()
    return pairs


TITLE = "Live: the network in this page"
LEAD = "These are the file's own weights, run by JavaScript with the bits of the file. Nothing leaves this page."
SILENT = "Scripts do not run here; the live panel needs them."


def live_section(material: Material) -> Html:
    """Return the panel, or why there is none."""
    place, contract = surface(material.model.contract), material.model.contract
    if contract.units is not None:
        return _without("This network gives real values. The panel draws class probabilities, which it does not have.")
    if place is None:
        return _without(NOT_DRAWABLE)
    try:
        script = live_script(material.model.program)
    except AxonnxError as fault:
        return _without(f"This network cannot run in a page. {fault}.")
    if len(script) > MOST_BYTES:
        told = f"As a script, this network is {size(len(script))} large; a report holds at most {size(MOST_BYTES)}."
        command = f"axonnx compile {material.name} -o js --target js"
        return section("live", TITLE, None, missing(f"{told} As a page of its own:", command))
    silent = element("noscript", element("p", SILENT, class_="lead"))
    return section("live", TITLE, LEAD, silent, panel(material.model.program, place, script, _samples(material)))


def _samples(material: Material) -> list[Example]:
    """Those that the report shows, by their true class where it is known."""
    shown = material.measured.shown if material.measured is not None else ()
    names = material.model.contract.classes
    return [Example(names[each.winner if each.label is None else each.label], each.frames) for each in shown]


def _without(why: str) -> Html:
    return section("live", TITLE, None, element("p", why, class_="missing"))
