"""Networks that a Python file makes: made once, and again where the file is another."""

from axonnx.export.convert.live import load_live

SOURCE = "import torch\n\n\ndef make():\n    return torch.nn.Linear({size}, 1)\n"


def test_a_file_of_the_same_name_is_not_taken_for_another(tmp_path, monkeypatch):
    found = []
    for size in (1, 2):
        folder = tmp_path / str(size)
        folder.mkdir()
        (folder / "net.py").write_text(SOURCE.format(size=size), "utf-8")
        monkeypatch.chdir(folder)
        found.append(load_live("net.py:make"))
        assert load_live("net.py:make") is found[-1]
    (tmp_path / "2" / "net.py").write_text(SOURCE.format(size=33), "utf-8")
    found.append(load_live("net.py:make"))
    assert [made.in_features for made in found] == [1, 2, 33]
