"""Known formats, and the detection of a file's format."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import NPY_MAGIC, NPZ_MAGIC
from axonnx.runtime.readers import aedat2, aedat31, confined, csv_text, nmnist, npz, prophesee, shd
from axonnx.runtime.readers.blocks import OpenRecording
from axonnx.runtime.readers.prophesee import evt_version, read_header
from axonnx.runtime.readers.recording import Recording


@dataclass(frozen=True)
class Format:
    """A format: its title, the suffixes of its files, and its readers."""

    title: str
    suffixes: tuple[str, ...]
    read: Callable[[Path], list[Recording]]
    open_blocks: Callable[[Path], OpenRecording] | None = None  # None if the file is only read as a whole


def _single(read: Callable[[Path], Recording]) -> Callable[[Path], list[Recording]]:
    return lambda path: [read(path)]


def _faery(name: str) -> Callable[[Path], list[Recording]]:
    return _single(partial(confined.read_by_faery, format_name=name))


FORMATS: dict[str, Format] = {
    "npz": Format("numpy archive", (".npz",), npz.read_npz),
    "npy": Format("numpy structured array", (".npy",), npz.read_npy),
    "csv": Format("text, columns t,x,y,p", (".csv",), _single(csv_text.read), csv_text.open_blocks),
    "txt": Format("text, lines t x y p in seconds", (".txt",), _single(csv_text.read_seconds), csv_text.open_seconds),
    "nmnist": Format("N-MNIST and gesture events, 5 bytes each", (".bin", ".bs2"), _single(nmnist.read)),
    "aedat2": Format("AEDAT 2.0, chip from the header", (".aedat", ".aedat2"), _single(aedat2.read)),
    **{
        f"aedat2-{chip}": Format(f"AEDAT 2.0 of a {chip}", (), _single(partial(aedat2.read, chip=chip)))
        for chip in aedat2.CHIPS
    },
    "aedat3.1": Format("AEDAT 3.1", (".aedat", ".aedat3"), _single(aedat31.read)),
    "evt2": Format("Prophesee EVT 2.0", (".raw",), _single(prophesee.read_evt2), prophesee.open_evt2),
    "dat": Format("Prophesee DAT", (".dat",), _single(prophesee.read_dat), prophesee.open_dat),
    "shd": Format("Spiking Heidelberg Digits HDF5", (".h5", ".hdf5"), shd.read_shd),
    "aedat4": Format("AEDAT 4.0, by faery", (".aedat4", ".aedat"), _faery("aedat4")),
    "evt3": Format("Prophesee EVT 3.0, by faery", (".raw",), _faery("evt3")),
    "es": Format("Event Stream, by faery", (".es",), _faery("es")),
}

MAGIC = {
    NPZ_MAGIC: "npz",
    NPY_MAGIC: "npy",
    shd.MAGIC: "shd",
    b"Event Stream": "es",
    aedat2.MAGIC: "aedat2",
    aedat31.MAGIC: "aedat3.1",
    b"#!AER-DAT4.0": "aedat4",
}
EVT = {"2.0": "evt2", "3.0": "evt3"}
WITHOUT_MAGIC = ("csv", "txt", "nmnist")
SUFFIXES = {suffix for form in FORMATS.values() for suffix in form.suffixes}


def is_meant_as_recording(path: Path) -> bool:
    """Return whether a file in a folder is a recording by its suffix, also if it is damaged.

    Text must begin like events, because notes are text, too.
    """
    suffix = path.suffix.lower()
    return suffix in SUFFIXES and path.is_file() and (suffix != ".txt" or csv_text.begins_like_events(path))


def known_formats() -> str:
    """Return the names and suffixes of all formats for error messages."""
    return ", ".join(f"{name} ({' '.join(form.suffixes)})" for name, form in FORMATS.items() if form.suffixes)


def format_of(path: Path, head: bytes) -> str:
    """Detect the format of a file by its first bytes, or by its suffix if the format has no magic bytes."""
    for magic, name in MAGIC.items():
        if head.startswith(magic):
            return name
    if head.startswith(b"% "):
        return _prophesee_format(path, head)
    for name in WITHOUT_MAGIC:
        if path.suffix.lower() in FORMATS[name].suffixes:
            return name
    raise AxonnxError(
        f"{path}: unknown format: byte 0: found {head[:16]!r} and the suffix {path.suffix!r}; expected one"
        f" of {known_formats()}. Convert the file, or name the format with format=."
    )


def _prophesee_format(path: Path, head: bytes) -> str:
    header, _ = read_header(head)
    version = evt_version(header)
    if version in EVT:
        return EVT[version]
    if path.suffix.lower() == ".dat" or "version" in header:
        return "dat"
    raise AxonnxError(
        f"{path}: the header states {f'EVT {version}' if version else 'no EVT version'};"
        f" expected '% evt' {', '.join(EVT)}, or '% Version' for DAT."
    )
