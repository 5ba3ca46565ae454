"""The site builds without a warning, holds every page, and asks nothing of any other host."""

import logging
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the site is built with mkdocs: pip install 'axonnx[docs]'")

from mkdocs.commands.build import build
from mkdocs.config import load_config

import axonnx
from axonnx.cli.command import VERBS
from axonnx.train.config.read import settings

ROOT = Path(__file__).parents[2]


class Loaded(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag in ("script", "img", "iframe", "source"):
            self.found.append(named.get("src"))
        if tag == "link" and named.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.found.append(named.get("href"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        patch.setattr(sys, "path", sys.path)
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)  # strict: a warning ends it
    yield folder
    logging.getLogger("mkdocs").handlers.clear()


def test_nothing_is_fetched_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text("utf-8"))
        assert [address for address in loaded.found if address and re.match(r"(https?:)?//", address)] == []


def test_every_verb_setting_and_public_name_is_there(site):
    reference = {page.stem: page.read_text("utf-8") for page in (site / "reference").glob("*.html")}
    assert [verb for verb in VERBS if f"usage: axonnx {verb}" not in reference["command-line"]] == []
    assert [key for key, _, _ in settings() if f"<code>{key}</code>" not in reference["settings"]] == []
    public = [name for name in dir(axonnx) if not name.startswith("__")]
    assert [name for name in public if f'id="axonnx{name.lower()}"' not in reference["python"]] == []


def test_every_public_name_has_its_docstring(site):
    page = re.sub(r"<[^>]+>|\s+", " ", (site / "reference" / "python.html").read_text("utf-8"))
    page = re.sub(r"\s+", " ", page)
    for name in (name for name in dir(axonnx) if not name.startswith("__")):
        first = getattr(axonnx, name).__doc__.splitlines()[0].split("``")[0].strip()[:40]
        assert first.split("(")[0].strip() in page, name
