"""``slurm:profile.yaml`` through dask-jobqueue; a program called sbatch stands in for the batch system."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from axonnx.base.errors import AxonnxError
from axonnx.cli import main
from axonnx.runtime.jobs.running import make_pool, run_jobs

from .some_jobs import squares

SBATCH = """#!/bin/sh
cp "$1" "{folder}/script.sh"
setsid sh "{folder}/script.sh" > "{folder}/job.log" 2>&1 &
echo "$!" > "{folder}/pid"
echo "Submitted batch job 17"
"""
SCANCEL = """#!/bin/sh
echo "$@" >> "{folder}/cancelled"
kill -- -$(cat "{folder}/pid")
"""
PROFILE = "queue: short\ncores: 1\nmemory: 1GB\ninterface: lo\nworkers: 1\n"


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A batch system that starts the worker at once, on this machine."""
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL)):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(folder=tmp_path))
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


DRIVER = """
import sys
from axonnx.runtime.jobs.running import in_order, make_pool, run_jobs
from tests.runtime.jobs.some_jobs import squares

if __name__ == "__main__":
    jobs = squares(5)
    print([outcome.text for outcome in in_order(jobs, run_jobs(jobs, make_pool(cluster=sys.argv[1])))])
"""


def test_workers_are_asked_for_and_given_back(slurm):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    (slurm / "profile.yaml").write_text(PROFILE)
    (slurm / "driver.py").write_text(DRIVER)
    command = [sys.executable, str(slurm / "driver.py"), f"slurm:{slurm / 'profile.yaml'}"]
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    expected = [outcome.text for outcome in run_jobs(squares(5), make_pool(1))]
    assert done.stdout.strip() == str(expected)
    script = (slurm / "script.sh").read_text()
    assert "#SBATCH -p short" in script
    assert "17" in (slurm / "cancelled").read_text()


@pytest.mark.parametrize(
    ("text", "fault"), [("[", "cannot be read as YAML"), ("- 1", "expected names and values"), (None, "cannot be read")]
)
def test_wrong_profiles_are_told(tmp_path, text, fault):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    path = tmp_path / "profile.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(AxonnxError, match=fault):
        list(run_jobs(squares(1), make_pool(cluster=f"slurm:{path}")))


# dask-jobqueue complains of a cluster that it did not make to its end.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_setting_that_the_batch_system_does_not_have_is_told(slurm):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    (slurm / "profile.yaml").write_text("queues: short\n")
    with pytest.raises(AxonnxError, match=r"profile\.yaml: .*queues"):
        list(run_jobs(squares(1), make_pool(cluster=f"slurm:{slurm / 'profile.yaml'}")))
    gc.collect()  # it complains here, and not in another test


def test_a_scheduler_that_is_not_there_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys):
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed")
    (tmp_path / "profile.yaml").write_text(PROFILE)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    words = ["sweep", "digits-static", "--seeds", "1", "--cluster", "slurm:profile.yaml", "--quiet"]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "the program sbatch is not on this machine" in said
