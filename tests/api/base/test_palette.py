"""The palette: six colours that stay apart for every reader, and one place where they are written."""

from itertools import combinations

import numpy as np
import pytest

from axonnx.base.palette import COLOURS, DARK, LIGHT, SERIES, colour_variables, groups_of_series, literal_colours

# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency" (2009),
# severity 1: protanopia, deuteranopia, tritanopia; and ordinary sight.
SIGHT = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
    "ordinary": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}
XYZ = np.array(((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505)))


def linear(colour):
    levels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)


def lab(levels):
    ratios = XYZ @ levels / XYZ.sum(1)
    x, y, z = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one, other):
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def distance(one, other, sight):
    seen = [lab(np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1)) for colour in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("mode", [LIGHT, DARK], ids=["light", "dark"])
def test_two_series_never_look_alike(mode, sight):
    series = [mode[f"c{number}"] for number in range(1, SERIES + 1)]
    assert min(distance(one, other, sight) for one, other in combinations(series, 2)) > 20


@pytest.mark.parametrize("mode", [LIGHT, DARK], ids=["light", "dark"])
def test_series_and_text_stand_out_from_their_ground(mode):
    for ground in ("card", "sunk"):
        assert all(contrast(mode[f"c{number}"], mode[ground]) > 2.8 for number in range(1, SERIES + 1))
        assert all(contrast(mode[text], mode[ground]) > 4.5 for text in ("text", "muted", "accent", "alert"))
    assert contrast(mode["accent"], mode["accent-bg"]) > 4.5
    assert contrast(mode["alert"], mode["alert-bg"]) > 4.5


def test_the_first_two_series_are_blue_and_orange():
    assert np.argmax(linear(LIGHT["c1"])) == 2
    red, green, blue = linear(LIGHT["c2"])
    assert red > green > blue


def test_red_and_green_are_alike_for_some():
    assert distance("#d73027", "#1a9850", "deuteranopia") < distance("#d73027", "#1a9850", "ordinary") / 2


@pytest.mark.parametrize(("series", "sizes"), [(0, [0]), (1, [1]), (6, [6]), (7, [3, 4]), (15, [5, 5, 5])])
def test_many_series_become_groups_of_nearly_equal_size(series, sizes):
    groups = groups_of_series(range(series))
    assert [len(group) for group in groups] == sizes
    assert [each for group in groups for each in group] == list(range(series))


def test_pages_get_every_colour_as_a_variable():
    text = colour_variables()
    assert all(f"--{name}:{pair[0]}" in text and f"--{name}:{pair[1]}" in text for name, pair in COLOURS.items())


def test_files_get_colours_that_every_program_knows():
    css = literal_colours("text{fill:var(--text)}\n.a{opacity:.5}\n.b{fill:var(--c1)}\n")
    assert "var(" not in css
    light, dark = css.split("@media(prefers-color-scheme:dark)")
    assert f".b{{fill:{LIGHT['c1']}}}" in light
    assert dark == f"{{text{{fill:{DARK['text']}}}.b{{fill:{DARK['c1']}}}}}"
