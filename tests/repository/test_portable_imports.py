"""Every module of the library can be imported where Python has no POSIX modules, as on Windows."""

import os
import subprocess
import sys

import pytest

from .test_import_rules import ROOT

TOPS = ("api", "cli", "export", "models", "native", "runtime", "train")
POSIX = ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty")
BLOCKED = f"""
import builtins, importlib, sys, warnings
warnings.simplefilter("ignore")
real = builtins.__import__

def blocked(name, globals=None, *rest):
    if name in {POSIX} and str((globals or {{}}).get("__name__")).startswith("axonnx"):
        raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
    return real(name, globals, *rest)

builtins.__import__ = blocked
for name in sys.argv[1:]:
    importlib.import_module(name)
print(len(sys.argv) - 1)
"""


def modules_of_the_library():
    paths = [path.relative_to(ROOT).with_suffix("") for top in TOPS for path in (ROOT / top).rglob("*.py")]
    names = (".".join(path.parts) for path in paths if path.name != "__main__")
    return sorted(f"axonnx.{name.removeprefix('api.')}".removesuffix(".__init__") for name in names)


def imported(*names, path=None):
    environment = {**os.environ, "PYTHONPATH": str(path)} if path else None
    command = [sys.executable, "-c", BLOCKED, *names]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)


def test_every_module():
    names = modules_of_the_library()
    assert len(names) > 200
    done = imported(*names)
    assert (done.returncode, done.stdout) == (0, f"{len(names)}\n"), done.stderr


@pytest.mark.parametrize("name", POSIX)
def test_a_posix_module_would_be_noticed(name, tmp_path):
    (tmp_path / "axonnx_example.py").write_text(f"import {name}\n")
    done = imported("axonnx_example", path=tmp_path)
    assert done.returncode == 1
    assert f"No module named '{name}'" in done.stderr
