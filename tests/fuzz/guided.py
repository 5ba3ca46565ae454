"""Coverage-guided cases for byte parsers, if atheris is installed: ``python -m tests.fuzz.guided FORMAT -runs=9999``.

FORMAT is one that we decode ourselves, as ``aedat3.1``; the other words go to libFuzzer. A finding ends the run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path


def main() -> None:
    """Until libFuzzer has had enough."""
    import atheris

    with atheris.instrument_imports(include=["axonnx.runtime"]):
        from axonnx.base.errors import AxonnxError
        from axonnx.runtime.readers import FORMATS
    from tests.fuzz.recording_samples import recordings

    name = sys.argv.pop(1)
    path = Path(tempfile.mkdtemp(prefix="axonnx-guided-")) / "case"

    def case(data: bytes) -> None:
        path.write_bytes(data)
        try:
            FORMATS[name].read(path)
        except AxonnxError:
            return

    seeds = path.parent / "seeds"
    seeds.mkdir()
    for sample, data in recordings().items():
        (seeds / sample).write_bytes(data)
    atheris.Setup([*sys.argv, str(seeds)], case)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
