"""The page in a real browser: it draws, it reacts, it fits a phone, and it asks nobody for anything."""

import html
import json
import re
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from axonnx.report.page import render

from .browser import Visit, chromium, visit

pytestmark = pytest.mark.skipif(chromium() is None, reason="no Chromium here; install it with apt-get install chromium")

# Opens the page in a frame of a phone's width, uses it, and writes down what it saw.
PROBE = """
<iframe id="phone" style="width:390px;height:800px" srcdoc="{page}"></iframe>
<pre id="seen"></pre>
<script>
document.getElementById('phone').addEventListener('load', () => {{
  const frame = document.getElementById('phone');
  const page = frame.contentDocument, style = (e) => frame.contentWindow.getComputedStyle(e);
  const panel = page.querySelectorAll('.sample')[1], slider = panel.querySelector('input');
  const seen = {{width: page.documentElement.scrollWidth, shown: page.querySelector('.sample.on').id}};
  page.querySelectorAll('.picker button')[1].click();
  seen.chosen = [...page.querySelectorAll('.sample')].filter((e) => style(e).display !== 'none').map((e) => e.id);
  seen.second = panel.id;
  seen.last = panel.querySelector('.odds').textContent;
  slider.value = 0;
  slider.dispatchEvent(new Event('input'));
  seen.step = panel.style.getPropertyValue('--t');
  seen.first = panel.querySelector('.odds').textContent;
  seen.background = style(page.body).backgroundColor;
  page.getElementById('theme').click();
  seen.other = style(page.body).backgroundColor;
  document.getElementById('seen').textContent = JSON.stringify(seen);
}});
</script>
"""

FAULTY = """
<img src="http://127.0.0.1:9/outside.png">
<script>undefined_function();</script>
"""


@pytest.fixture(scope="module")
def text(material) -> str:
    return render(material)


@pytest.fixture(scope="module")
def seen(text, tmp_path_factory) -> Visit:
    folder = tmp_path_factory.mktemp("browser")
    (folder / "report.html").write_text(text, "utf-8")
    return visit(folder / "report.html", folder, "--blink-settings=preferredColorScheme=0")


def test_the_console_is_silent(seen):
    assert seen.console == []


def test_nothing_is_requested(seen):
    assert seen.requests == []


def test_the_page_draws(seen, text):
    assert '<html lang="en" class="js">' in seen.dom
    for tag in ("svg", "path", "rect", "table", "article"):
        assert seen.dom.count(f"<{tag}") == text.count(f"<{tag}") > 0
    assert "Verified: 0 mismatches" in seen.dom


def test_it_is_dark_where_the_reader_wants_it_dark(seen):
    assert pixels(seen.picture)[5, 5:].mean() < 60


def test_it_can_be_used_on_a_phone(text, tmp_path):
    page = tmp_path / "probe.html"
    page.write_text(PROBE.format(page=html.escape(text)), "utf-8")
    found = visit(page, tmp_path)
    assert found.console == []
    (told,) = re.findall(r'<pre id="seen">(.*?)</pre>', found.dom, re.DOTALL)
    facts = json.loads(html.unescape(told))
    assert facts["width"] <= 390
    assert facts["chosen"] == [facts["second"]] != [facts["shown"]]
    assert facts["step"] == "0"
    assert facts["first"] != facts["last"]
    assert facts["background"] != facts["other"]


def test_the_look_into_the_browser_bites(tmp_path):
    page = tmp_path / "faulty.html"
    page.write_text(FAULTY, "utf-8")
    found = visit(page, tmp_path)
    assert any("undefined_function" in line for line in found.console)
    assert found.requests == ["http://127.0.0.1:9/outside.png"]


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"))
