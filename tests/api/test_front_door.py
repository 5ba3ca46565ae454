"""What ``import axonnx`` offers: these names, found when they are used, and nothing heavy before."""

import inspect
import subprocess
import sys
from importlib.metadata import version

import pytest

import axonnx

NAMES = {
    "AxonnxError",
    "__version__",
    "export_network",
    "export_run",
    "import_network",
    "load",
    "open_run",
    "profile_file",
    "read_events",
    "report_file",
    "train_run",
    "verify_file",
}
FUNCTIONS = sorted(NAMES - {"AxonnxError", "__version__"})

FRESH = """
import sys
import axonnx
assert set(dir(axonnx)) == set(axonnx.__all__)
heavy = ("numpy", "onnx", "onnxruntime", "pydantic", "torch")
print([name for name in heavy if name in sys.modules])
axonnx.load, axonnx.read_events, axonnx.AxonnxError
print([name for name in ("onnxruntime", "torch") if name in sys.modules])
"""


def test_the_front_door_is_this_list():
    assert set(dir(axonnx)) == NAMES


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_documented_and_typed_and_take_plain_arguments(name):
    function = getattr(axonnx, name)
    assert function.__name__ == name
    assert inspect.getdoc(function)
    signature = inspect.signature(function)
    kinds = [parameter.annotation for parameter in signature.parameters.values()] + [signature.return_annotation]
    assert all(kind is not inspect.Parameter.empty and "Namespace" not in str(kind) for kind in kinds)


def test_the_version_is_the_installed_one():
    assert axonnx.__version__ == version("axonnx")


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        axonnx.lod  # noqa: B018


def test_importing_sub_packages_rebinds_no_name():
    code = "import axonnx, axonnx.train.run, axonnx.export.run, axonnx.report.page; print(callable(axonnx.train_run))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "True\n"


def test_nothing_heavy_is_imported_before_it_is_needed():
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
