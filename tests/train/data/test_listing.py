import pytest

from axonnx.base.errors import AxonnxError
from axonnx.train.data.listing import Piece, read_pieces


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "day").mkdir()
    for name in ("a.npz", "day/b.raw"):
        (tmp_path / name).write_text("a recording")
    return tmp_path


def recordings(folder):
    return [folder / "a.npz", folder / "day" / "b.raw"]


def test_one_file_names_every_recording(folder):
    (folder / "labels.csv").write_text(
        "label, start,end,file\nwave,5,9,a.npz\nclap,-3,4,day/b.raw\nwave,10,20,b.raw\n\n"
    )
    assert read_pieces(folder, "labels.csv", recordings(folder)) == {
        folder / "a.npz": [Piece(5, 9, "wave")],
        folder / "day" / "b.raw": [Piece(-3, 4, "clap"), Piece(10, 20, "wave")],
    }


def test_a_file_beside_each_recording(folder):
    (folder / "a_labels.csv").write_text("start,end,label\n1,2,x\n")
    (folder / "day" / "b_labels.csv").write_text("start,end,label\n3,4,y\n")
    (folder / "day" / "gone_labels.csv").write_text("start,end,label\n3,4,y\n")
    found = read_pieces(folder, "*_labels.csv", recordings(folder))
    assert found == {folder / "a.npz": [Piece(1, 2, "x")], folder / "day" / "b.raw": [Piece(3, 4, "y")]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no column start and no end and no label among nothing"),
        ("start,end\n1,2\n", "has no column label among start, end"),
        ("start,end,label\n1,2,x\n", "has no column file, and there are 2 recordings"),
        ("file,start,end,label\nc.npz,1,2,x\n", "names the recording 'c.npz'"),
        ("file,start,end,label\na.npz,1,2.5,x\n", "line 2: found 'a.npz,1,2.5,x'; expected .* whole µs"),
        ("file,start,end,label\na.npz,1\n", "line 2: found 'a.npz,1'"),
        ("file,start,end,label\na.npz,5,5,x\n", "line 2: ends at 5 and starts at 5"),
        ("file,start,end,label\na.npz,1,5,\n", "line 2: ends at 5 and starts at 1, as ''"),
    ],
)
def test_what_is_no_label_file_is_refused_with_its_line(folder, text, says):
    (folder / "labels.csv").write_text(text)
    with pytest.raises(AxonnxError, match=says):
        read_pieces(folder, "labels.csv", recordings(folder))


@pytest.mark.parametrize("name", ["labels.csv", "*_labels.csv"])
def test_a_label_file_that_is_not_there_is_named(folder, name):
    with pytest.raises(AxonnxError, match="there is no label file"):
        read_pieces(folder, name, recordings(folder))
