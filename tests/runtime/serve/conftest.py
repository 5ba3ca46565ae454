"""Common ground: the files that the stream tests export."""

import pytest

from ..streams.conftest import engines, files, one_thread

pytest.importorskip("uvicorn", reason="serving needs uvicorn: pip install 'axonnx[serve]'")
pytest.importorskip("starlette", reason="serving needs starlette: pip install 'axonnx[serve]'")
pytest.importorskip("websockets", reason="serving needs websockets: pip install 'axonnx[serve]'")

__all__ = ["engines", "files", "one_thread"]
