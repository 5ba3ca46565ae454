"""The page at / and what it looks at: self-contained, live, and without any effect on the stream."""

import json
import re
import subprocess
import threading
from base64 import b64decode
from contextlib import contextmanager
from urllib.request import urlopen

import numpy as np
import pytest
from websockets.sync.client import connect

from axonnx.runtime.events.arrays import Sensor, make_events, to_records
from axonnx.runtime.serve.app import page_text
from axonnx.runtime.serve.limits import Limits
from axonnx.runtime.serve.view import View

from ..report.browser import QUIET, chromium
from ..streams.small_models import CLASSES
from .live import HOST, everything, serving, told

PAGE = page_text()


def counts(view, plane):
    return np.frombuffer(b64decode(view[plane]), np.uint8).reshape(view["height"], view["width"])


def test_the_page_asks_nothing_of_any_other_host(files):
    assert not re.search(r"https?://|@import|url\(|src=|integrity", PAGE)
    with serving(files["plain"]) as live:
        assert live.get("/") == PAGE


def test_a_picture_shows_the_events_and_the_decision(files):
    events = make_events([100, 200, 300, 6_000], [1, 1, 7, 40], [0, 0, 5, 0], [1, 1, 0, 1])
    with serving(files["plain"]) as live, live.client("/stream?every_bin=1") as client, live.client("/watch") as page:
        number = told(client)["stream"]
        while told(page)["stream"] != number:
            pass
        client.send(to_records(events))
        client.send('{"type": "advance", "t_us": 6000}')
        on, off = np.zeros((6, 8), int), np.zeros((6, 8), int)
        while (view := told(page))["decision"] is None or view["decision"]["t_us"] < 6_000:
            on, off = on + counts(view, "on"), off + counts(view, "off")
        on, off = on + counts(view, "on"), off + counts(view, "off")
        decision = [told(client) for _ in range(6)][-1]
    assert ((on[0, 1], on.sum()), (off[5, 7], off.sum())) == ((2, 2), (1, 1))  # one is off the sensor
    assert [bar[1] for bar in view["decision"]["bars"]] == decision["probabilities"]
    assert (view["decision"]["label"], view["events"], len(view["history"])) == (decision["label"], 4, 6)


def test_who_looks_on_is_limited_and_told_of_the_end(files):
    with serving(files["plain"], limits=Limits(watchers=1)) as live, live.client("/watch?stream=9") as page:
        assert told(page)["stream"] is None
        with live.client("/watch") as other:
            messages, code, _ = everything(other)
        assert (code, messages[0]["text"]) == (
            1013,
            "1 pages watch already, the most that are allowed; try again later",
        )
        with live.client("/watch?stream=x") as other:
            assert everything(other)[1] == 1008
        live.stop()
        assert everything(page)[1] == 1001


@pytest.mark.parametrize(("width", "height"), [(640, 480), (1, 1), (65536, 2), (65, 64)])
def test_large_sensors_are_shown_as_squares(width, height):
    view = View(Sensor(width=width, height=height))
    corners = make_events([0, 1], [0, width - 1], [0, height - 1], 1)
    view.add_events(corners)
    shown = view.take()
    picture = counts(shown, "on")
    assert max(picture.shape) <= 64
    assert (picture.sum(), picture[0, 0] > 0, picture[-1, -1] > 0) == (2, True, True)
    assert counts(view.take(), "on").sum() == 0


@contextmanager
def tab(browser, folder, address):
    """A function that evaluates an expression in a browser's page."""
    words = [*QUIET, "--remote-debugging-port=0", f"--user-data-dir={folder}", address]
    with subprocess.Popen([browser, *words], stderr=subprocess.PIPE, text=True) as process:
        try:
            told = next(line for line in process.stderr if "DevTools listening on" in line)
            port = re.search(r":(\d+)/", told).group(1)
            with urlopen(f"http://{HOST}:{port}/json/list") as answer:
                page = next(each for each in json.load(answer) if each["type"] == "page")
            with connect(page["webSocketDebuggerUrl"], proxy=None, max_size=None) as socket:
                yield lambda expression: _evaluated(socket, expression)
        finally:
            process.kill()


def _evaluated(socket, expression):
    asked = {"expression": expression, "returnByValue": True}
    socket.send(json.dumps({"id": 1, "method": "Runtime.evaluate", "params": asked}))
    return json.loads(socket.recv(timeout=20))["result"]["result"].get("value")


def test_the_page_in_a_browser(files, tmp_path):
    """It shows the stream that is fed, and sends one of its own."""
    browser = chromium()
    if browser is None:
        pytest.skip("no Chromium here to open the page in")
    events, ended = make_events(np.arange(400) * 20, np.arange(400) % 8, np.arange(400) % 6, np.arange(400) % 2), []
    with serving(files["plain"]) as live, live.client("/stream?every_bin=1") as client:

        def feed():
            chunk = events.copy()
            while not ended:  # a message gives eight decisions; the first, whose last bin is open, seven and a hello
                client.send(to_records(chunk))
                for _ in range(8):
                    told(client)
                chunk["t"] += 8_000

        thread = threading.Thread(target=feed)
        thread.start()
        try:
            with tab(browser, tmp_path / "profile", f"http://{HOST}:{live.port}/") as evaluate:
                _until(lambda: (evaluate("document.querySelector('#note')?.innerText") or "").startswith("Stream 1: "))
                _until(lambda: evaluate("document.querySelectorAll('.bar').length") == 4)
                assert evaluate("document.querySelector('#label').innerText") in CLASSES
                assert (
                    evaluate(
                        "Math.max(...document.querySelector('#picture').getContext('2d')"
                        ".getImageData(0, 0, 8, 6).data.filter((_, i) => i % 4 < 3))"
                    )
                    > 100
                )
                evaluate("document.querySelector('#try').click()")
                _until(lambda: live.metric("streams_total") == 2)
                _until(lambda: live.service.streams[2].events > 2_000)
        finally:
            ended.append(True)
            thread.join()


def _until(reached):
    for _ in range(600):
        if reached():
            return
        threading.Event().wait(0.05)
    raise AssertionError("waited in vain")
