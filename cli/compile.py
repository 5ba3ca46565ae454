"""``axonnx compile``: a file's network as source code, to build and run where there is no Python."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from axonnx.compiling import TARGETS, compile_to


def main(arguments: Sequence[str]) -> int:
    """``axonnx compile``."""
    options = make_parser().parse_args(arguments)
    found = compile_to(options.model, options.output, options.target)
    for name, size in found.files.items():
        print(f"{size:>12,}  {found.folder / name}")
    print(f"wrote {found.folder}: begin with {found.folder / 'README.md'}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx compile",
        description="Write an exported file's network as source code that needs neither Python nor axonnx to run, with "
        "the same bits: c for any compiler, js for browsers and node, cortex-m as firmware that qemu runs.",
        allow_abbrev=False,
    )
    parser.add_argument("model", help="a file of axonnx export")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the folder to write")
    parser.add_argument("--target", choices=TARGETS, default="c", help="(default: %(default)s)")
    return parser
