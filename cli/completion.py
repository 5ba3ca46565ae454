"""``axonnx completion SHELL``: what the shell needs to complete verbs, options and shipped names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

from axonnx.base.errors import AxonnxError
from axonnx.cli.command import ENGINES_ONLY, VERBS

SHELLS = ("bash", "zsh", "tcsh")


def main(arguments: Sequence[str]) -> int:
    """``axonnx completion``."""
    options = make_parser().parse_args(arguments)
    if find_spec("shtab") is None:
        raise AxonnxError(
            "completion scripts are made by shtab, which is not installed: pip install 'axonnx[completion]'"
        )
    import shtab

    print(shtab.complete(whole_parser(), options.shell))
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx completion",
        description="Print a script that completes verbs, options and shipped names.",
        epilog='In bash: eval "$(axonnx completion bash)", there or in ~/.bashrc. In zsh: axonnx completion zsh > '
        "_axonnx, in a folder of $fpath.",
    )
    parser.add_argument("shell", choices=SHELLS)
    return parser


def whole_parser() -> argparse.ArgumentParser:
    """All verbs with their options under one parser."""
    whole = argparse.ArgumentParser("axonnx")
    verbs = whole.add_subparsers()
    for name, verb in VERBS.items():
        parents = _parsers(ENGINES_ONLY, verb.place) if name == "verify" else _parsers(verb.place)
        one = verbs.add_parser(name, help=verb.does, parents=parents, add_help=False, conflict_handler="resolve")
        if name == "train" and parents:
            _add_settings(one)
        for action in one._actions:
            if action.choices is None and action.nargs != 0:
                action.complete = {"bash": "_shtab_compgen_files", "zsh": "_files", "tcsh": "f"}  # type: ignore[attr-defined]
    return whole


def _parsers(*places: str) -> list[argparse.ArgumentParser]:
    """The parsers at ``places``; a verb whose packages are not installed is completed without its options."""
    found = []
    for place in places:
        try:
            found.append(import_module(place.partition(":")[0]).make_parser())
        except ModuleNotFoundError as missing:
            if (missing.name or "").startswith("axonnx"):
                raise
    return found


def _add_settings(train: argparse.ArgumentParser) -> None:
    """Shipped configurations by name, and every setting as an option."""
    from axonnx.train.config.read import settings, shipped

    for key, _, about in settings():
        train.add_argument(f"--{key}", help=about.replace("%", "%%"))
    for action in train._actions:
        if action.dest == "configuration":
            action.choices = list(shipped())
