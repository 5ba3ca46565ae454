"""Where the real recordings are, or a skip that says what to set."""

import os
from pathlib import Path

import pytest

BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[3].parent / "shared" / "data"


def real(name: str) -> Path:
    """The path of a real recording; skips the test where it is not to be had."""
    folder = Path(os.environ.get("AXONNX_DATA", BESIDE_THE_REPOSITORY))
    if not (folder / name).exists():
        pytest.skip(f"{folder / name} is not there; set AXONNX_DATA to the folder of the real recordings")
    return folder / name
