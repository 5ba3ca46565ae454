"""The live panel in Chromium: what is drawn, dropped or waved runs through the network with the bits of the engine."""

import html
import json
import re

import numpy as np
import pytest

from axonnx.runtime.binning import Binning, Sensor, bin_events
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.model import Model
from axonnx.runtime.report.material import Material
from axonnx.runtime.report.model_view import view_model
from axonnx.runtime.report.page import render
from axonnx.runtime.report.panel import try_page

from ..readers.event_files import csv_bytes, random_events
from ..streams.small_models import export, samples
from .browser import chromium, visit

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium here; install it with apt-get install chromium")

# Draws a line, waits for the decision, then drops a recording, then waves at a camera that stands still.
PROBE = """
<pre id="seen"></pre>
<script>
addEventListener('load', () => {
  const panel = document.querySelector('.live'), sensor = panel.querySelector('.sensor'), seen = [];
  const told = () => panel.querySelector('.told').textContent;
  const pointer = (type, x, y) => {
    const box = sensor.getBoundingClientRect();
    const place = { clientX: box.left + x * box.width, clientY: box.top + y * box.height };
    sensor.dispatchEvent(new PointerEvent(type, place));
  };
  const draw = () => {
    pointer('pointerdown', 0.2, 0.2);
    pointer('pointermove', 0.8, 0.6);
    pointer('pointerup', 0.8, 0.6);
  };
  const drop = (text, name) => {
    const dropped = new DataTransfer();
    dropped.items.add(new File([text], name));
    panel.dispatchEvent(new DragEvent('drop', { dataTransfer: dropped, cancelable: true }));
  };
  const wave = () => {
    panel.querySelector('[value=still]').checked = true;
    pointer('pointerdown', 0.3, 0.3);
    let x = 0.3;
    setInterval(() => pointer('pointermove', x += 0.05, 0.5), 10);
  };
  const turns = TURNS;
  panel.addEventListener('decided', ({ detail }) => {
    const strips = [...panel.querySelectorAll('.band canvas')].map((canvas) => canvas.getAttribute('aria-label'));
    const [frames, logits] = [detail.frames, detail.logits].map((rows) => rows.map((row) => [...row]));
    seen.push({ frames, logits, told: told(), strips });
    document.getElementById('seen').textContent = JSON.stringify(seen);
    setTimeout(turns.shift() ?? (() => {}), 1);
  });
  turns.shift()();
});
</script>
"""


def probed(page: str, turns: str, folder, *flags: str) -> list[dict]:
    """All decisions while a probe acts."""
    return titled(page, turns, folder, *flags)[1]


def titled(page: str, turns: str, folder, *flags: str) -> tuple[str, list[dict]]:
    """What a probe wrote into the page's title, and all decisions."""
    path = folder / "page.html"
    path.write_text(page.replace("</body>", PROBE.replace("TURNS", turns) + "</body>"), "utf-8")
    found = visit(path, folder, "--virtual-time-budget=8000", *flags)
    assert found.console == []
    assert found.requests == []
    seen = re.search(r'<pre id="seen">(.*?)</pre>', found.dom, re.DOTALL)[1]
    return re.search(r"<title>(.*?)</title>", found.dom)[1], json.loads(html.unescape(seen) or "[]")


def test_what_is_drawn_dropped_or_waved_has_the_bits_of_the_engine(tmp_path):
    """Of a sensor of 8 × 6 pixels in five bins, with counts up to three."""
    view = view_model(export(samples()["plain"], tmp_path / "plain.onnx"))
    events = random_events(1500, 8, 6, 6000)
    recording = json.dumps(csv_bytes(events).decode())
    turns = f"[draw, () => drop({recording}, 'a.csv'), wave]"
    drawn, dropped, waved = probed(render(Material(view, "now")), turns, tmp_path)
    engine = Model(view.program, NumpyEngine(view.program))
    for seen in (drawn, dropped, waved):
        frames = np.array(seen["frames"], np.float32).reshape(5, 1, *view.contract.input.shape)
        run = engine.run(frames, trace=True)
        assert np.array_equal(np.float32(seen["logits"]), run.member_logits[:, 0])
        assert frames.max() == 3
        winner = view.contract.classes[int(np.argmax(seen["logits"][0]))]
        assert seen["told"].startswith(f"Decided: {winner} with ")
        spikes = [int(re.search(r": ([\d,]+) spikes", text)[1].replace(",", "")) for text in seen["strips"][1:-1]]
        assert spikes == [int(run.traces["spikes/hidden.0.neuron"].sum())]
    binned = bin_events(events, view.contract.input.binning)
    assert np.array_equal(np.array(dropped["frames"]), binned.frames.reshape(5, -1))
    assert f"1,500 events of a.csv, {binned.outside.total} of them left out" in dropped["told"]
    assert binned.outside.total > 0


def test_samples_of_the_report_run_at_a_click(material, tmp_path):
    """To the decisions that were measured for them."""
    turns = '[0, 1, 2].map((n) => () => panel.querySelector(`[data-example="${n}"]`).click())'
    found = probed(render(material), turns, tmp_path)
    for seen, sample in zip(found, material.measured.shown, strict=False):
        assert np.array_equal(np.array(seen["frames"]), sample.frames.reshape(len(sample.frames), -1))
        assert int(np.argmax(seen["logits"][0])) == sample.winner
        name = material.model.contract.classes[sample.label]
        assert f"a sample of class {name}." in seen["told"]
    assert len(found) == 3


def test_frames_of_counts_are_bins_of_a_sensor_of_their_shape(model, tmp_path):
    view = view_model(model)
    events = random_events(200, 6, 6, 90_000)
    (seen,) = probed(
        try_page(view.program), f"[() => drop({json.dumps(csv_bytes(events).decode())}, 'a.csv')]", tmp_path
    )
    clip = min(255, view.contract.input.largest)
    expected = bin_events(events, Binning(sensor=Sensor(width=6, height=6), bins=8, bin_us=10_000, clip=clip))
    assert np.array_equal(np.array(seen["frames"]), expected.frames.reshape(8, -1))


def test_a_picture_is_drawn_for_a_network_of_images(images, tmp_path):
    view = view_model(images)
    (seen,) = probed(try_page(view.program), "[draw]", tmp_path)
    picture = np.array(seen["frames"][0], np.float32).reshape(1, *view.contract.input.shape)
    engine = Model(view.program, NumpyEngine(view.program))
    assert np.array_equal(np.float32(seen["logits"]), engine.run(engine.prepare(picture)).member_logits[:, 0])
    assert picture.max() > picture.min()


# What a reader who does nothing sees: the steps shown, the decision, and the button's text before and after.
WATCH = """[() => {
  const steps = [], button = panel.querySelector('[data-do=play]');
  new MutationObserver(() => steps.push(panel.querySelector('.player output').textContent))
    .observe(panel.querySelector('.player'), { subtree: true, childList: true });
  panel.addEventListener('decided', () => document.title = [button.textContent, new Set(steps).size].join());
  sensor.scrollIntoView({ behavior: 'instant' }), dispatchEvent(new Event('scroll'));
}]"""
PAUSE = """[() => {
  const button = panel.querySelector('[data-do=play]'), shown = () => panel.querySelector('.player output').textContent;
  sensor.scrollIntoView({ behavior: 'instant' }), dispatchEvent(new Event('scroll'));
  const wait = setInterval(() => {
    if (!shown().startsWith('step 3')) return;
    clearInterval(wait);
    const told = [button.textContent];
    button.focus();
    told.push(document.activeElement === button);
    button.click();
    told.push(button.textContent);
    setTimeout(() => {
      document.title = [...told, shown(), (button.click(), button.textContent)].join();
    }, 1500);
  }, 5);
}]"""


def test_the_first_sample_of_a_report_plays_on_opening(material, tmp_path):
    told, (seen,) = titled(render(material), WATCH, tmp_path)
    assert told == "▶ Play,7"  # seven steps were shown before the decision
    first = material.measured.shown[0]
    assert np.array_equal(np.array(seen["frames"]), first.frames.reshape(len(first.frames), -1))
    assert f"a sample of class {material.model.contract.classes[first.label]}." in seen["told"]


@pytest.mark.parametrize("kind", ["model", "images"])
def test_a_page_without_samples_plays_a_recorded_drawing(kind, request, tmp_path):
    view = view_model(request.getfixturevalue(kind))
    _, decided = titled(try_page(view.program), "[() => {}]", tmp_path)
    if kind == "model":  # an image is decided before anyone can look on
        (seen,) = decided
        assert seen["told"].endswith(", a recorded drawing.")
        assert np.any(seen["frames"])


def test_whoever_wants_no_motion_sees_the_decision_at_once(material, tmp_path):
    told, (seen,) = titled(render(material), WATCH, tmp_path, "--force-prefers-reduced-motion")
    assert told == "▶ Play,0"  # no step before the decision
    assert len(seen["frames"]) == 8


def test_the_recording_can_be_paused_and_goes_on(material, tmp_path):
    told, (seen,) = titled(render(material), PAUSE, tmp_path)
    assert told == "❚❚ Pause,true,▶ Play,step 3 of 8,❚❚ Pause"
    assert len(seen["frames"]) == 8
