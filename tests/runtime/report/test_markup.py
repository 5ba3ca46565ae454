import math

import pytest

from axonnx.runtime.report import markup
from axonnx.runtime.report.markup import Html, element, joined

from .html_check import Page


def test_text_and_attributes_are_escaped():
    assert element("p", "a < b & c", title='"<x>"') == '<p title="&quot;&lt;x&gt;&quot;">a &lt; b &amp; c</p>'


def test_markup_stays_as_it_is():
    assert element("p", element("b", "x"), ["y", None, 3]) == "<p><b>x</b>y3</p>"


def test_attributes_by_name():
    found = element("i", class_="a", data_x="1", aria_label="z", hidden=True, title=None, open=False, width=1.23456789)
    assert found == '<i class="a" data-x="1" aria-label="z" hidden width="1.23457"></i>'


def test_elements_without_content():
    assert element("meta", name="viewport") == '<meta name="viewport">'
    with pytest.raises(AssertionError):
        element("br", "text")


def test_pieces_of_any_depth_become_one_text():
    assert joined(["<", [Html("<b>"), ["&"]]]) == "&lt;<b>&amp;"


@pytest.mark.parametrize(
    "text",
    [
        "<p><b></p></b>",
        "<p>",
        '<a href="#x"></a>',
        '<i id="a"></i><i id="a"></i>',
        "<svg></svg>",
        '<img src="http://a.b/c.png">',
        "<style>@import url(//a.b/c.css)</style>",
        '<script src="//cdn.example.org/x.js"></script>',
    ],
)
def test_the_check_of_pages_bites(text):
    assert Page(text).faults


def test_the_check_of_pages_lets_the_harmless_pass():
    svg = '<svg aria-label="x" xmlns="http://www.w3.org/2000/svg"><path d="M0 0"></path></svg>'
    assert Page(f'<p id="a">1 // 2 <br><a href="#a">x</a></p>{svg}').faults == []


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (markup.percent, 0.12345, "12.3 %"),
        (markup.percent, math.nan, "–"),
        (markup.percent, None, "–"),
        (markup.interval, (0.9, 0.95), "90.0 – 95.0 %"),
        (markup.interval, (0.9, math.nan), "–"),
        (markup.count, 1234567, "1,234,567"),
        (markup.count, None, "–"),
        (markup.short, 1680.6, "1,681"),
        (markup.short, 12.345, "12.3"),
        (markup.short, 123456, "123 k"),
        (markup.short, math.inf, "–"),
        (markup.energy, 840.2, "840 nJ"),
        (markup.energy, 999.9, "1.00 µJ"),
        (markup.energy, 0.0, "0 J"),
        (markup.energy, None, "–"),
        (markup.size, 341915, "342 kB"),
        (markup.number, 0.00012345, "0.0001234"),
        (markup.power_of_two, -17, "2⁻¹⁷"),
    ],
)
def test_numbers_for_people(write, value, text):
    assert write(value) == text
