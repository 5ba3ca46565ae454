"""The package that installs is the tree that stands here."""

import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOLDERS = (
    "api",
    "cli",
    "export",
    "models",
    "native",
    "runtime",
    "train",
)


def test_every_folder_with_modules_is_packaged():
    here = {str(path.parent.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("__init__.py")}
    spec = spec_from_file_location("axonnx_setup", ROOT / "setup.py")
    setup = module_from_spec(spec)
    spec.loader.exec_module(setup)
    mapped = setup.package_folders()
    assert set(mapped.values()) == here
    assert {"axonnx", "axonnx.base", "axonnx.runtime.serve", "axonnx.export.convert"} <= set(mapped)
    assert not any("experiments" in name or name.startswith("axonnx.api") for name in mapped)


def test_no_module_hides_in_an_unpackaged_folder():
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            assert (path.parent / "__init__.py").exists(), path


def test_constraints_pin_every_requirement():
    pinned = {line.split("==")[0].lower() for line in _constraints()}
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = {_name(line) for group in (PROJECT["project"]["dependencies"], *extras) for line in group}
    assert wanted - {"axonnx"} <= pinned


def test_tonic_with_its_licence_is_an_extra_of_its_own():
    extras = PROJECT["project"]["optional-dependencies"]
    assert [name for name, lines in extras.items() if "tonic" in map(_name, lines)] == ["tonic"]
    assert "tonic" not in map(_name, PROJECT["project"]["dependencies"])


def test_constraints_are_exact_and_name_no_host():
    assert all(line.count("==") == 1 and "://" not in line for line in _constraints())
    assert "torch==2.13.0" in _constraints()


def test_typed_marker_is_everywhere():
    assert all((ROOT / folder / "py.typed").exists() for folder in FOLDERS)


def _constraints() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _name(requirement: str) -> str:
    return requirement.split("[")[0].split(">")[0].split("=")[0].strip().lower()
