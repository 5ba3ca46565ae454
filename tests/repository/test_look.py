"""One palette: no picture, page or style sheet of the project has a colour of its own."""

import re
from pathlib import Path

import pytest

from axonnx.base.palette import COLOURS

ROOT = Path(__file__).parents[2]
OURS = {colour for pair in COLOURS.values() for colour in pair}
DRAWN = (
    *ROOT.glob("docs/**/*.svg"),
    *ROOT.glob("runtime/report/*"),
    *ROOT.glob("runtime/serve/*"),
    *ROOT.glob("experiments/*"),
)
PLOTTED = (ROOT / "train/output_files.py", ROOT / "cli/prove.py")
SOURCES = [path for path in (*DRAWN, *PLOTTED) if path.suffix in (".svg", ".py", ".js", ".css", ".html")]
NAMES = "aqua|black|blue|brown|cyan|gr[ae]y|green|magenta|navy|orange|pink|purple|red|teal|violet|white|yellow"
LITERAL = re.compile(
    r"(?<![&\w(])#(?:[0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})\b|\b(?:rgba?|hsla?)\([^)]*\)", re.IGNORECASE
)
NAMED = re.compile(rf"(?:color|fill|stroke|background|border(?:-\w+)?)\s*[:=]\s*[\"']?(?:{NAMES})\b", re.IGNORECASE)


def strangers(text: str) -> set[str]:
    """Colours in a text that are not of the palette."""
    return {found for found in LITERAL.findall(text) if found.lower() not in OURS} | set(NAMED.findall(text))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_colour_is_of_the_palette(path):
    assert strangers(path.read_text("utf-8")) == set()


def test_the_look_at_colours_bites():
    assert strangers("a{color:#1a9850}") == {"#1a9850"}
    assert strangers("<p style='background: rgb(1, 2, 3)'>") == {"rgb(1, 2, 3)"}
    assert strangers('axes.axvline(1, color="grey")') == {'color="grey'}
    assert strangers("pen.fillStyle = `hsl(${hue} 70% 60%)`") == {"hsl(${hue} 70% 60%)"}
    assert strangers(f"a{{color:{min(OURS)}}} <a href='#activity'> &#8212; url(#arrow)") == set()
