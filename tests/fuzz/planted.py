"""A campaign in which everything happens that the harness must see; not one of those that ``make fuzz`` runs."""

import ctypes
import time

from tests.fuzz.harness import Finding, shared_folder

NAME = "planted"


def setup():
    (shared_folder() / "ready").touch()


def material(seed):
    return f"input of {seed}".encode()


def case(seed):
    print("what a case prints is no answer")
    assert (shared_folder() / "ready").exists()
    if seed == 2:
        raise Finding("two engines differ")
    if seed == 3:
        raise KeyError("raw")
    if seed == 4:
        ctypes.string_at(0)
    if seed == 5:
        time.sleep(60)
    if seed == 6:
        bytearray(1 << 34)
    if seed == 7:
        return "perhaps"
    while seed == 10:
        pass
    if seed == 11:
        time.sleep(1.5)
    return "accepted" if seed % 2 == 0 else "refused"
