"""Trains, dies by SIGKILL at a chosen point, and resumes: once for each point, in processes forked from this one.

``python kill_driver.py CONFIG.toml FOLDER``: FOLDER/whole is the run that nobody killed, FOLDER/<point> the others.
FOLDER/report.json says how both processes of each point ended and which files lay there in between.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from axonnx.cli.command import run_verb
from axonnx.train import checkpoint, loop, run

main = partial(run_verb, "train")

# A file that is put in its place: its name, which time, and whether death comes before or after.
REPLACED = {
    "results written, not yet in place": ("results.csv", 2, "before"),
    "results ahead of the checkpoint": ("results.csv", 2, "after"),
    "weights written, not yet in place": ("weights-00002.safetensors", 1, "before"),
    "between the tensor files": ("weights-00002.safetensors", 1, "after"),
    "optimiser written, not yet in place": ("optimiser-00002.safetensors", 1, "before"),
    "both tensor files, old index": ("optimiser-00002.safetensors", 1, "after"),
    "index written, not yet in place": ("checkpoint.json", 2, "before"),
    "new index, old files still there": ("checkpoint.json", 2, "after"),
    "first checkpoint without index": ("checkpoint.json", 1, "before"),
    "fine-tuning just begun": ("checkpoint.json", 3, "after"),
    "all epochs done, no figures yet": ("metrics.json", 1, "before"),
}
POINTS = [*REPLACED, "half a tensor file", "in the middle of an epoch", "before the first epoch"]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(point: str) -> None:
    """Make this process die at the point."""
    if point in REPLACED:
        _arm_replace(*REPLACED[point])
    elif point == "half a tensor file":
        checkpoint.save_file = _save_half
    else:
        _arm_step(epoch=1 if point == "in the middle of an epoch" else 0)


def _arm_replace(name: str, nth: int, when: str) -> None:
    replace, seen = os.replace, [0]

    def deadly(source: str, target: str) -> None:
        seen[0] += Path(target).name == name
        now = Path(target).name == name and seen[0] == nth
        if now and when == "before":
            die()
        replace(source, target)
        if now:
            die()

    os.replace = deadly


def _save_half(tensors: dict, path: Path, save: Callable = checkpoint.save_file) -> None:
    save(tensors, path)
    if "optimiser-00002" in path.name:
        os.truncate(path, path.stat().st_size // 2)
        die()


def _arm_step(epoch: int) -> None:
    step = loop._step

    def deadly(wrapped, training, *rest):
        if training.epochs_done == epoch and not (epoch and training.optimiser.state_dict()["state"][0]["step"] < 9):
            die()
        return step(wrapped, training, *rest)

    loop._step = deadly


def in_child(job: Callable[[], object]) -> int:
    """How a process that did the job ended: 0, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            job()
        except BaseException as fault:
            print(repr(fault), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def train(source: str, out: Path, point: str | None = None) -> None:
    if point is not None:
        arm(point)
    main([source, "--data.augmentation.flip=true", "--out", str(out), "--quiet"])


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    config, base = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    run.draw_curves = lambda *_: False  # takes longer than the run
    train(config, base / "whole")  # here, so that what is imported late is imported once
    report = {}
    for point in POINTS:
        out = base / point
        killed = in_child(lambda: train(config, out, point))  # noqa: B023 (it is used at once)
        left = files(out)
        resumed = in_child(lambda: main(["--resume", "--out", str(out), "--quiet"]))  # noqa: B023
        report[point] = {"killed": killed, "left": left, "resumed": resumed}
    (base / "report.json").write_text(json.dumps(report))
