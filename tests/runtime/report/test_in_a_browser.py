"""The page in a real browser: it draws, it reacts, it fits a phone, and it asks nobody for anything."""

import html
import json
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from axonnx.runtime.report.page import render

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
  page.querySelectorAll('details').forEach((e) => e.open = true);
  const scrolls = (e) => e && (['auto', 'scroll'].includes(style(e).overflowX) || scrolls(e.parentElement));
  const named = (e) => `${{e.tagName}}.${{e.getAttribute('class')}} of ${{e.closest('section, header, footer')?.id}}`;
  const written = (e) => [...e.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
  const visible = (e) => !e.closest('.hidden, script') && e.getClientRects().length;
  const all = [...page.body.querySelectorAll('*')].filter(visible);
  const wide = all.filter((e) => !scrolls(e) && e.getBoundingClientRect().right > 390.5).map(named);
  const small = all.filter((e) => written(e) && parseFloat(style(e).fontSize) < 12).map(named);
  const stretched = all.filter((e) => e.tagName === 'text').map(named);  // an SVG's text shrinks with it
  const seen = {{wide, small, stretched}};
  Object.assign(seen, {{width: page.documentElement.scrollWidth, shown: page.querySelector('.sample.on').id}});
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


def on_a_phone(text: str, folder: Path) -> dict:
    page = folder / "probe.html"
    page.write_text(PROBE.format(page=html.escape(text)), "utf-8")
    found = visit(page, folder)
    assert found.console == []
    (told,) = re.findall(r'<pre id="seen">(.*?)</pre>', found.dom, re.DOTALL)
    return json.loads(html.unescape(told))


def test_it_can_be_used_and_read_on_a_phone(text, tmp_path):
    """No element is wider than the screen, but in a box that scrolls; no text is smaller than 12 pixels."""
    facts = on_a_phone(text, tmp_path)
    assert facts["width"] <= 390
    assert facts["wide"] == facts["small"] == facts["stretched"] == []
    assert facts["chosen"] == [facts["second"]] != [facts["shown"]]
    assert facts["step"] == "0"
    assert facts["first"] != facts["last"]
    assert facts["background"] != facts["other"]


def test_the_look_at_a_phone_bites(text, tmp_path):
    faults = (
        '<p id="a" style="width:500px">wide</p><p style="font-size:11px">small</p><svg><text>of an SVG</text></svg>'
    )
    facts = on_a_phone(text.replace("<footer>", f"{faults}<footer>"), tmp_path)
    assert [len(facts[name]) for name in ("wide", "small", "stretched")] == [1, 1, 1]


def test_the_look_into_the_browser_bites(tmp_path):
    page = tmp_path / "faulty.html"
    page.write_text(FAULTY, "utf-8")
    found = visit(page, tmp_path)
    assert any("undefined_function" in line for line in found.console)
    assert found.requests == ["http://127.0.0.1:9/outside.png"]


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"))
