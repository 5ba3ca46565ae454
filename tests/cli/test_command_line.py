"""The ``axonnx`` command itself: help, version, wrong use, and a quick start."""

import subprocess
import sys
from importlib import import_module, metadata

import pytest

from axonnx.cli import main
from axonnx.cli.command import VERBS


def test_version_is_the_package_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"axonnx {metadata.version('axonnx')}\n"


def test_help_names_every_verb(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(verb in out for verb in VERBS)


def test_no_words_is_wrong_use_and_shows_the_help(capsys):
    assert main([]) == 2
    assert "usage: axonnx" in capsys.readouterr().out


def test_unknown_verb_is_wrong_use_and_names_the_nearest(capsys):
    assert main(["trian"]) == 2
    assert "Did you mean 'train'?" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_exists(verb):
    module, function = VERBS[verb].place.split(":")
    assert callable(getattr(import_module(f"axonnx.cli.{module}"), function))


def test_user_faults_end_with_exit_code_2_and_no_traceback(capsys):
    assert main(["train", "no-such-configuration"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("axonnx train: unknown configuration")
    assert "Traceback" not in err


def test_start_up_imports_neither_torch_nor_numpy():
    code = (
        "import sys; from axonnx.cli import main; main(['--help']); "
        "assert not {'torch', 'numpy', 'onnx'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_installed_command_runs():
    command = [sys.executable, "-m", "axonnx.cli", "--version"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
