"""``axonnx completion``: the script completes what the verbs really take."""

import shutil
import subprocess

import pytest

from axonnx.cli import main, tools
from axonnx.cli.command import VERBS

ASK = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_axonnx; echo "${COMPREPLY[@]}"'


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    import shtab

    path = tmp_path_factory.mktemp("completion") / "axonnx.bash"
    path.write_text(shtab.complete(tools.whole_parser(), "bash"), "utf-8")
    return path


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["ver"], ["verify"]),
        (["verify", "--da"], ["--data"]),
        (["verify", "--ru"], ["--run"]),
        (["train", "digits-"], ["digits-saccade", "digits-static"]),
        (["train", "--optimiser.ep"], ["--optimiser.epochs"]),
        (["export", "--collapse", "s"], ["sampled", "stochastic"]),
        (["run", "--thr"], ["--threads"]),
    ],
)
def test_bash_completes_verbs_options_and_shipped_names(script, words, completed):
    done = subprocess.run(["bash", "-c", ASK, script, "axonnx", *words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == completed


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_every_shell_gets_a_script_that_names_every_verb(shell, capsys):
    assert main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert [verb for verb in VERBS if verb not in out] == []


def test_without_shtab_the_error_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(tools, "find_spec", lambda name: None)
    assert main(["completion", "bash"]) == 2
    assert "pip install 'axonnx[completion]'" in capsys.readouterr().err
