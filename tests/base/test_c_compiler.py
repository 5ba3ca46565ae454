"""The machine's compiler, as $CC names it or as it is usually called."""

import pytest

from axonnx.base.c_compiler import find_compiler


@pytest.mark.parametrize(
    ("given", "here", "found"),
    [
        (None, {"gcc", "clang"}, "/bin/gcc"),
        (None, {"clang"}, "/bin/clang"),
        (None, set(), None),
        ("mine", {"mine", "cc"}, "/bin/mine"),
        ("mine", {"cc"}, None),
    ],
)
def test_who_is_asked_first(monkeypatch, given, here, found):
    monkeypatch.delenv("CC", raising=False)
    if given is not None:
        monkeypatch.setenv("CC", given)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if name in here else None)
    assert find_compiler.__wrapped__() == found
