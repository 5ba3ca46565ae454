"""``axonnx compile``: a folder and a list of what is in it, or one line and exit code 2."""

from axonnx.cli import main


def test_it_lists_what_it_wrote(files, tmp_path, capsys):
    folder = tmp_path / "out"
    assert main(["compile", str(files["plain"]), "-o", str(folder), "--target", "js"]) == 0
    out = capsys.readouterr().out
    assert f"{(folder / 'network.js').stat().st_size:,}  {folder / 'network.js'}\n" in out
    assert out.endswith(f"wrote {folder}: begin with {folder / 'README.md'}\n")


def test_faults_are_one_line(files, tmp_path, capsys):
    (tmp_path / "own.txt").write_text("mine")
    for model, place in ((files["plain"], tmp_path), (tmp_path / "none.onnx", tmp_path / "out")):
        assert main(["compile", str(model), "-o", str(place)]) == 2
        assert capsys.readouterr().err.startswith("axonnx compile: ")
    assert [path.name for path in tmp_path.iterdir()] == ["own.txt"]
