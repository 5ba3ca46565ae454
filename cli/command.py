"""``axonnx VERB …``: finds the verb and hands over. A verb's folder is imported only when it is used."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module, metadata
from typing import NamedTuple

from axonnx.cli.guard import FINE, WRONG_USE, guarded


class Verb(NamedTuple):
    """Where a verb lives, as ``module:function``, and what it does. The function returns an exit code."""

    place: str
    does: str


VERBS: dict[str, Verb] = {
    "demo": Verb("axonnx.cli.demo:main", "the whole pipeline on the embedded data, in minutes"),
    "train": Verb("axonnx.cli.train:main", "train a network on events or images"),
    "data": Verb("axonnx.cli.data:main", "show what recordings, frames or a data set hold"),
    "export": Verb("axonnx.cli.export:main", "collapse a trained network into one ONNX file"),
    "import": Verb("axonnx.cli.importing:main", "a trained network of snnTorch, SpikingJelly, Norse or NIR as ours"),
    "verify": Verb("axonnx.cli.verify:main", "compare a file with its training network, bit for bit"),
    "run": Verb("axonnx.cli.run:main", "run an exported file on events, frames or images"),
    "serve": Verb("axonnx.cli.serve:main", "run an exported file on many live streams, over WebSocket"),
    "inspect": Verb("axonnx.cli.inspect:main", "show what an exported file promises and does"),
    "profile": Verb("axonnx.cli.profile:main", "spikes, operations, time and energy of exported files"),
    "compile": Verb("axonnx.cli.compile:main", "a file as source code that runs without Python"),
    "report": Verb("axonnx.cli.report:main", "one HTML page with all that is known of a file"),
    "experiment": Verb("axonnx.cli.experiment:main", "run the paper's experiments and draw what they found"),
    "sweep": Verb("axonnx.cli.sweep:main", "train with many settings and seeds, and name the best"),
    "eval": Verb("axonnx.cli.eval:main", "accuracy and calibration of a file on labelled data, or of a run"),
    "doctor": Verb("axonnx.cli.doctor:main", "what is installed here and whether every engine gives the right bits"),
    "completion": Verb("axonnx.cli.completion:main", "a script that completes these words in bash, zsh or tcsh"),
}
ENGINES_ONLY = "axonnx.cli.verify_engines:main"  # of verify --engines, which needs no torch


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the return value is the exit code: 0 fine, 1 verification failed, 2 wrong use."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    warnings.formatwarning = _plain_warning
    # Torch's threads, when they have nothing to do, would keep the processors from the core's.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if words and words[0] in VERBS:
        return guarded(f"axonnx {words[0]}", lambda: _run(VERBS[words[0]], words[1:]))
    return guarded("axonnx", lambda: _without_verb(words))


def _plain_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning as people read it; those of other libraries keep their name."""
    return f"{message}\n" if issubclass(category, UserWarning) else f"{category.__name__}: {message}\n"


def _without_verb(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(help_text())
        return FINE if words else WRONG_USE
    if words[0] in ("-V", "--version"):
        print(f"axonnx {metadata.version('axonnx')}")
        return FINE
    print(_unknown(words[0]), file=sys.stderr)
    return WRONG_USE


def help_text() -> str:
    """What ``axonnx --help`` prints."""
    lines = [f"  {name:<12}{verb.does}" for name, verb in VERBS.items()]
    return "\n".join(
        [
            "axonnx: train binary and spiking networks, ship them as one ONNX file, run it on events",
            "",
            "usage: axonnx VERB [options]      axonnx VERB --help      axonnx --version",
            "",
            *(["verbs:", *lines] if lines else []),
        ]
    ).rstrip()


def _run(verb: Verb, words: list[str]) -> int:
    place = ENGINES_ONLY if verb is VERBS["verify"] and "--engines" in words else verb.place
    module, function = place.split(":")
    code: int = getattr(import_module(module), function)(words)
    return code


def _unknown(word: str) -> str:
    near = get_close_matches(word, VERBS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    known = ", ".join(VERBS) or "none yet"
    return f"axonnx: unknown verb {word!r}; known are: {known}.{hint} See axonnx --help."
