"""The ``axonnx`` command."""

from axonnx.cli.command import main

__all__ = ["main"]
