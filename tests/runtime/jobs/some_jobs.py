"""Jobs that other processes can import: some count, one fails once, one kills its process."""

import os
import signal
import time
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.runtime.jobs.work import Job


def square(number):
    return {"number": number, "root": number**0.5, "square": number * number}


def squares(count):
    return [Job(f"square of {number}", square, (number,)) for number in range(count)]


def fail(text):
    raise AxonnxError(text)


def crash():
    raise RuntimeError("unexpected")


def once_only(folder, ending):
    """Fails, or dies, the first time; the second time it works."""
    mark = Path(folder) / "tried"
    if mark.exists():
        return "worked"
    mark.touch()
    if ending == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    raise OSError("the disk was away")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def slow_square(number, folder):
    (Path(folder) / f"{number}.pid").write_text(str(os.getpid()))
    time.sleep(0.05)
    return square(number)


def counted(number, folder):
    """Says in a file that it was done."""
    with (Path(folder) / "done.txt").open("a") as file:
        file.write(f"{number}\n")
    return square(number)
