"""One home for every rule: what a second copy would look like, looked for in every module but its home."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from axonnx.runtime.format import names

ROOT = Path(__file__).parents[2]
TOPS = (
    "api",
    "cli",
    "experiments",
    "export",
    "models",
    "runtime",
    "train",
)
FIELDS = (names.SPIKES, names.MEMBRANE, names.NOISE, names.TOTAL)
ROLES = (names.INITIAL, names.NEXT, names.FINAL, names.TRACE, names.NOW_TRACE)


def names_of_the_graph(tree: ast.AST) -> Iterator[str]:
    """Texts that begin as the name of a value in a graph does."""
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    yield from (text for text in texts if text.startswith((*FIELDS, *ROLES)) and " " not in text)


def operations(tree: ast.AST, op: type[ast.operator]) -> list[ast.BinOp]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, op)]


def powers(exponent: int) -> Callable[[ast.AST], Iterator[str]]:
    """2**exponent, of integers or floats."""

    def found(tree: ast.AST) -> Iterator[str]:
        for node in operations(tree, ast.Pow):
            sides = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
            if sides == [2, exponent]:
                yield ast.unparse(node)

    return found


def units_of_the_input(tree: ast.AST) -> Iterator[str]:
    """2^−shift or 2^shift, whosever shift it is."""
    texts = [(ast.unparse(node), ast.unparse(node.right)) for node in operations(tree, ast.Pow)]
    yield from (text for text, exponent in texts if exponent.endswith("shift"))


def exponentials(tree: ast.AST) -> Iterator[str]:
    """np.exp, as in a softmax."""
    calls = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    yield from (call for call in calls if call.startswith("np.exp("))


def products_with_logarithms(tree: ast.AST) -> Iterator[str]:
    """p · np.log(p), as in an entropy."""
    for node in operations(tree, ast.Mult):
        if any(ast.unparse(side).startswith("np.log(") for side in (node.left, node.right)):
            yield ast.unparse(node)


PLAIN = "export/verify/plain_figures.py"  # shares no formula with what it judges, on purpose
# rule -> what gives a copy away, its home, and where the same signs mean something else
HOMES = {
    "softmax": (
        exponentials,
        "runtime/streams/probabilities.py",
        {
            PLAIN,
            "train/data/augment_events.py",  # loudness, whose logarithm is drawn
        },
    ),
    "entropy": (products_with_logarithms, "runtime/streams/probabilities.py", {PLAIN}),
    "the unit of the input": (
        units_of_the_input,
        "runtime/format/contract.py",
        {
            "export/verify/grids.py",  # shares no formula with the collapse, on purpose
        },
    ),
    "names of the graph": (
        names_of_the_graph,
        "runtime/format/names.py",
        {
            "runtime/readers/shd.py",  # paths in an HDF5 file
            "cli/prove.py",  # spikes for each inference
        },
    ),
    "2²⁴, the integers of float32": (
        powers(24),
        "runtime/format/values.py",
        {
            "export/verify/grids.py",  # shares no number with the collapse, on purpose
            "api/base/numpy_files.py",  # bytes
            "runtime/binning/completed.py",  # bytes
            "runtime/streams/udp_source.py",  # bytes
            "runtime/format/contract.py",  # the longest axis
            "train/config/settings.py",  # the longest axis
        },
    ),
}


def copies(rule: str) -> dict[str, list[str]]:
    signs, home, elsewhere = HOMES[rule]
    paths = [path for top in TOPS for path in sorted((ROOT / top).rglob("*.py"))]
    found = {str(path.relative_to(ROOT)): list(signs(ast.parse(path.read_text("utf-8")))) for path in paths}
    return {path: texts for path, texts in found.items() if texts and path != home and path not in elsewhere}


@pytest.mark.parametrize("rule", HOMES)
def test_a_rule_has_one_home(rule):
    signs, home, _ = HOMES[rule]
    assert list(signs(ast.parse((ROOT / home).read_text("utf-8")))), f"{home} is no home of {rule}"
    assert copies(rule) == {}


def test_the_signs_are_seen():
    assert set(names_of_the_graph(ast.parse('f"next/{state}" + "trace/x" + "a next/ b"'))) == {"next/", "trace/x"}
    assert set(powers(24)(ast.parse("a < 2**24 or b < 2.0**24 or c < 2**25"))) == {"2 ** 24", "2.0 ** 24"}
    assert set(units_of_the_input(ast.parse("a * 2.0**-self.shift + 2**shift + 2**other"))) == {
        "2.0 ** (-self.shift)",
        "2 ** shift",
    }
    assert list(exponentials(ast.parse("np.exp(x) + np.expm1(x)"))) == ["np.exp(x)"]
    assert list(products_with_logarithms(ast.parse("p * np.log(p) - np.log(p)"))) == ["p * np.log(p)"]
