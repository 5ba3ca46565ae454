"""What ``import axonnx`` offers: these names, found when they are used, and nothing heavy before."""

import inspect
import subprocess
import sys
import warnings
from importlib.metadata import version

import pytest

import axonnx

NAMES = {
    "AxonnxError",
    "Callback",
    "LightningLogger",
    "MLflow",
    "Model",
    "Progress",
    "Run",
    "TensorBoard",
    "WandB",
    "__version__",
    "bayesian",
    "completion_script",
    "describe_data",
    "examine",
    "import_network",
    "load",
    "load_data",
    "read_events",
    "regulariser",
    "regularizer",
    "run_demo",
    "write_events",
}
EARLIER = {
    "export_network",
    "export_run",
    "open_run",
    "profile_file",
    "report_file",
    "train_run",
    "verify_file",
}
FUNCTIONS = sorted(name for name in NAMES - {"regularizer"} if name[0].islower())
METHODS = [
    (axonnx.Run, name) for name in ("train", "resume", "export", "verify", "evaluate", "report", "sweep")
] + [
    (axonnx.Model, name)
    for name in ("predict", "stream", "evaluate", "profile", "verify", "compile", "report", "inspect", "save", "serve")
]  # fmt: skip

FRESH = """
import sys
import axonnx
assert set(dir(axonnx)) <= set(axonnx.__all__)
heavy = ("numpy", "onnx", "onnxruntime", "pydantic", "torch")
print([name for name in heavy if name in sys.modules])
axonnx.load, axonnx.read_events, axonnx.AxonnxError, axonnx.Model, axonnx.Run, axonnx.load_data
print([name for name in ("onnxruntime", "torch") if name in sys.modules])
"""


def test_the_front_door_is_this_list():
    assert set(dir(axonnx)) == NAMES
    assert set(axonnx.__all__) == NAMES | EARLIER


def documented(function):
    assert inspect.getdoc(function)
    signature = inspect.signature(function)
    given = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    kinds = [parameter.annotation for parameter in given] + [signature.return_annotation]
    assert all(kind is not inspect.Parameter.empty and "Namespace" not in str(kind) for kind in kinds)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_documented_and_typed_and_take_plain_arguments(name):
    function = getattr(axonnx, name)
    assert function.__name__ == name
    documented(function)


@pytest.mark.parametrize(("noun", "name"), METHODS)
def test_so_are_the_methods_of_the_two_nouns(noun, name):
    documented(getattr(noun, name))


@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("name", sorted(EARLIER))
def test_names_of_the_version_before_say_what_takes_their_place(name):
    function = getattr(axonnx, name)  # to name it warns of nothing
    with warnings.catch_warnings(record=True) as said, pytest.raises((TypeError, axonnx.AxonnxError)):
        function("nowhere")
    assert f"axonnx.{name} goes with the next version; use axonnx" in str(said[0].message)
    assert said[0].category is DeprecationWarning


def test_the_version_is_the_installed_one():
    assert axonnx.__version__ == version("axonnx")


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'lod'"):
        axonnx.lod  # noqa: B018


def test_importing_sub_packages_rebinds_no_name():
    code = (
        "import axonnx, axonnx.train.run, axonnx.export.exporting, axonnx.runtime.report.page, "
        "axonnx.trained_run, axonnx.model; "
        "print([name for name in dir(axonnx) if name[0].islower() and not callable(getattr(axonnx, name))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_nothing_heavy_is_imported_before_it_is_needed():
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"
