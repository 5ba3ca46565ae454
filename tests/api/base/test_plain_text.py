"""Text from strangers: what a name may hold, and how everything else is shown."""

import io
import json
import sys
import unicodedata
import xml.etree.ElementTree as ET

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.base.plain_text import (
    PlainStream,
    check_names,
    check_plain,
    check_plain_lines,
    escaped,
    escaped_lines,
    raw_stream,
)
from axonnx.cli.guard import guarded

ODD = [
    "\x1b[2J",
    "a\nverified: 0 mismatches",
    "\r",
    "\t",
    "\x7f",
    "\x9b31m",
    "\u202egnp.exe",
    "\u2066",
    "\u200f",
    "\u2028",
]
ODD += ["\ud800", "\ufeff", "\ufffe", "\u200b", "\U000e0041", "\0", "\u061c", "\u2062"]
FINE = ["yes", "Ø 10 %", "左", "می‌خواهم", "👩‍👧", "<b>&\"'", " spaced out ", "", "é"]


@pytest.mark.parametrize("text", ODD)
def test_what_is_not_plain_is_refused_as_a_name_and_escaped_where_it_is_shown(text):
    with pytest.raises(ValueError, match=r"holds U\+[0-9A-F]{4,6} at character "):
        check_plain(text)
    with pytest.raises(AxonnxError, match=r"class .* holds U"):
        check_names(["fine", text], "class")
    shown = escaped(text)
    assert shown.isprintable()
    assert json.loads(f'"{shown}"') == text or text == "\ud800"


@pytest.mark.parametrize("text", FINE)
def test_plain_text_stays_as_it_is(text):
    assert check_plain(text) == escaped(text) == escaped_lines(text) == text


def test_every_control_surrogate_and_separator_of_unicode_is_odd_and_no_letter_is():
    for number in range(0x11000):
        letter = chr(number)
        kind = unicodedata.category(letter)
        if kind in ("Cc", "Cs", "Zl", "Zp") or (kind == "Cf" and letter not in "\u200c\u200d"):
            assert escaped(letter) != letter, f"U+{number:04X} {kind}"
        elif kind[0] in "LNPSMZ":
            assert escaped(letter) == letter, f"U+{number:04X} {kind}"


def test_names_have_an_end():
    check_names(["a" * 256], "class")
    with pytest.raises(AxonnxError, match="has 257 characters; expected at most 256"):
        check_names(["a" * 257], "class")


def test_lines_keep_their_ends():
    assert check_plain_lines("a\n\tb") == escaped_lines("a\n\tb") == "a\n\tb"
    assert escaped_lines("a\n\x1b[Ab") == "a\n\\u001b[Ab"
    with pytest.raises(ValueError, match=r"holds U\+001B at character 3"):
        check_plain_lines("a\n\x1b")


def test_plain_text_is_valid_in_xml():
    ET.fromstring(f"<a>{escaped(''.join(ODD)).replace('<', '')}</a>")


def test_a_plain_stream_shows_what_would_move_the_cursor():
    below = io.StringIO()
    stream = PlainStream(below)
    print("name\x1b[1A\x1b[2Kverified\u202e", "b", file=stream, flush=True)
    assert below.getvalue() == "name\\u001b[1A\\u001b[2Kverified\\u202e b\n"
    assert raw_stream(stream) is below
    assert raw_stream(below) is below
    assert not stream.isatty()


def test_no_error_can_forge_a_line_of_the_command_line(capsys):
    def action():
        raise AxonnxError("a\x1b[2K\nverified: 0 mismatches\n  indented")

    before = sys.stdout, sys.stderr
    assert guarded("axonnx verify", action) == 2
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr().err == "axonnx verify: a\\u001b[2K\n  verified: 0 mismatches\n  indented\n"
