"""Common ground of the front door's tests: the files that the stream tests export."""

from ..runtime.streams.conftest import engines, environment, files, one_thread, real

__all__ = ["engines", "environment", "files", "one_thread", "real"]
