"""Files that are there whole or not at all, and what becomes of the parts of killed writers."""

import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from axonnx.base import files
from axonnx.base.errors import AxonnxError
from axonnx.base.files import PART, claimed, read_at_most, remove_leftovers, replacing, write_text
from axonnx.cli import main
from axonnx.cli.guard import guarded
from axonnx.runtime.readers import read_events

WRITER = """
import sys, time
from axonnx.base.files import replacing
with replacing(sys.argv[1]) as part:
    part.write_text("half")
    print("writing", flush=True)
    time.sleep(100)
"""


@pytest.fixture
def writer(tmp_path):
    """A process in the middle of writing ``tmp_path / "page"``."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "page")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:
        assert running.stdout.readline() == b"writing\n"
        yield running
        running.kill()


def parts(folder):
    return sorted(folder.glob(f".*{PART}"))


def test_the_part_of_a_living_writer_is_left_alone(tmp_path, writer):
    write_text(tmp_path / "page", "mine")
    remove_leftovers(tmp_path)
    assert [part.read_text() for part in parts(tmp_path)] == ["half"]


def test_the_part_of_a_killed_writer_goes_when_the_file_is_written_again(tmp_path, writer):
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert len(parts(tmp_path)) == 1
    write_text(tmp_path / "other", "leaves what is not its own")
    assert len(parts(tmp_path)) == 1
    write_text(tmp_path / "page", "whole")
    assert (parts(tmp_path), (tmp_path / "page").read_text()) == ([], "whole")


def test_files_of_others_are_never_taken_for_ours(tmp_path):
    others = [".page.part", ".page.1234.part", "page.axonnx.part.txt", ".page.axonnx.partial"]
    for name in others:
        (tmp_path / name).write_text("theirs")
    (tmp_path / f".page.link{PART}").symlink_to(tmp_path / others[0])
    remove_leftovers(tmp_path)
    write_text(tmp_path / "page", "mine")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, f".page.link{PART}", "page"])


def test_names_with_wildcards_are_names(tmp_path):
    (tmp_path / f".page.12{PART}").write_text("left behind by another file")
    write_text(tmp_path / "p*", "x")
    write_text(tmp_path / "[p]age", "x")
    assert len(parts(tmp_path)) == 1


def test_threads_may_write_one_file(tmp_path):
    texts = [str(number) * 10_000 for number in range(8)]
    for _ in range(200):  # each removes what it takes for the remains of the others
        threads = [threading.Thread(target=write_text, args=(tmp_path / "page", text)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (tmp_path / "page").read_text() in texts
    assert parts(tmp_path) == []


def test_a_fault_in_the_block_leaves_the_old_file(tmp_path):
    write_text(tmp_path / "page", "old")
    with suppress(KeyError), replacing(tmp_path / "page") as part:
        part.write_text("new")
        raise KeyError
    assert ((tmp_path / "page").read_text(), parts(tmp_path)) == ("old", [])


def test_a_missing_folder_is_said_of_the_file_itself(tmp_path):
    with pytest.raises(OSError, match=r"cannot be written \(No such file or directory\)") as fault:
        write_text(tmp_path / "no" / "page", "text")
    assert fault.value.filename == str(tmp_path / "no" / "page")


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    write_text(tmp_path / "page", "old")
    script = f"from axonnx.base.files import write_text; write_text({str(tmp_path / 'page')!r}, 'x' * 100_000)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
        stderr=subprocess.PIPE,
        check=False,
    )
    assert b"cannot be written (File too large)" in done.stderr
    assert ((tmp_path / "page").read_text(), parts(tmp_path)) == ("old", [])


def test_no_more_is_read_than_there_can_be(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_at_most(path, 5) == b"12345"
    with pytest.raises(AxonnxError, match=r"file: holds more than 4 bytes"):
        read_at_most(path, 4)
    with open(path, "wb") as sparse:
        sparse.truncate(1 << 33)  # eight gigabytes that take no room
    with pytest.raises(AxonnxError, match=r"holds more than 1,000,000 bytes"):
        read_at_most(path, 10**6)


def test_a_pipe_is_read_to_its_end_or_as_far_as_it_may(tmp_path):
    for most, text in ((6, b"hello\n"), (5, None)):
        reading, writing = os.pipe()
        os.write(writing, b"hello\n")
        os.close(writing)
        try:
            if text is None:
                with pytest.raises(AxonnxError, match="holds more than 5 bytes"):
                    read_at_most(f"/dev/fd/{reading}", most)
            else:
                assert read_at_most(f"/dev/fd/{reading}", most) == text
        finally:
            os.close(reading)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no device without an end")
@pytest.mark.parametrize("words", [["inspect", "/dev/zero"], ["verify", "/dev/zero"]])
def test_a_device_without_an_end_is_one_line(words, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err.endswith(": /dev/zero: is a device; expected a file\n")
    with pytest.raises(AxonnxError, match="is a device"):
        read_events("/dev/zero", format="csv")


class RangeLocks:
    """What Windows offers in the place of fcntl: locks on the first byte of a file, one holder at a time."""

    LK_LOCK, LK_NBLCK = 1, 2

    def __init__(self):
        self.held, self.waits = set(), 0

    def locking(self, descriptor, mode, count):
        assert (os.lseek(descriptor, 0, os.SEEK_CUR), count) == (0, 1)
        place = os.fstat(descriptor).st_ino
        if place not in self.held:
            self.held.add(place)
        elif mode == self.LK_NBLCK:
            raise PermissionError(errno.EACCES, "Permission denied")
        else:  # gives up after ten seconds; the holder leaves at the third attempt
            self.waits += 1
            if self.waits == 2:
                self.held.clear()
            raise OSError(errno.EDEADLK, "Resource deadlock avoided")


def test_locks_where_there_is_no_fcntl(tmp_path, monkeypatch):
    windows = RangeLocks()
    monkeypatch.setattr(files, "POSIX", False)
    monkeypatch.setattr(files, "msvcrt", windows)
    with claimed(tmp_path) as first, claimed(tmp_path) as second:
        assert (first, second) == (True, False)
    with claimed(tmp_path, wait=True) as late:
        assert (late, windows.waits) == (True, 2)
    write_text(tmp_path / "page", "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "page"]


@pytest.mark.parametrize("verb", [["inspect"], ["run", "PIPE", "-"], ["compile", "-o", "x"], ["eval", "--data", "x"]])
def test_a_named_pipe_is_no_model_and_nobody_waits_for_it(verb, tmp_path, capsys):
    os.mkfifo(tmp_path / "a.onnx")
    words = [str(tmp_path / "a.onnx") if word == "PIPE" else word for word in verb]
    words += [] if "PIPE" in verb else [str(tmp_path / "a.onnx")]
    assert main(words) == 2
    assert "a.onnx: is a named pipe; expected a file" in capsys.readouterr().err


def test_a_socket_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("here")
        with pytest.raises(AxonnxError, match="here: is a socket; expected a file"):
            read_at_most("here", 10)


def test_a_request_for_too_much_memory_is_the_users_to_mend(capsys):
    def action():
        raise MemoryError("Unable to allocate 3 GiB")

    assert guarded("axonnx run", action) == 2
    assert capsys.readouterr().err == (
        "axonnx run: not enough memory: Unable to allocate 3 GiB. Give less at a time, or more memory\n"
    )
