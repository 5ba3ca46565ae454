"""``axonnx VERB …``: finds the verb, reads its words, and hands over. What a verb needs is imported when it is used."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module, metadata
from typing import NamedTuple

from axonnx.cli.guard import FINE, WRONG_USE, guarded

LOAD = "axonnx.model:load"


class Verb(NamedTuple):
    """What a verb does, the functions whose signatures are its options, and where its text is made."""

    group: str
    does: str
    calls: tuple[str, ...]  # module:function, one after the other
    place: str  # module:function, which returns an exit code
    extra: tuple[str, ...] = ()  # options of the command line alone
    without: tuple[str, ...] = ()  # parameters that are no words
    settings: bool = False  # takes --section.key value
    epilog: str = ""


SETTINGS = "axonnx train --settings lists every setting, e.g. --optimiser.epochs 10 --data.values binary."
SOURCES = (
    "SOURCE is a recording (npz, npy, csv, N-MNIST bin, AEDAT, EVT, DAT, ES, SHD), - for csv lines or 16-byte records "
    "(--format records) on standard input, or udp:[HOST:]PORT for such records in datagrams. Networks of frames or "
    "images take an npz or npy file. Several, a folder, a glob or @list.txt give one answer for each recording and a "
    "summary, with the accuracy if folders are named after classes: axonnx run model.onnx data/test --jobs 4 --json "
    "answers.jsonl; interrupted, the same command goes on."
)
STREAMS = "/stream takes 16-byte records and gives JSON, / shows a stream live, /health and /metrics are for machines."
VERBS: dict[str, Verb] = {
    "train": Verb("build", "train a network on events or images", ("axonnx.trained_run:Run.train",), "build:train",
                  ("list", "all_settings"), settings=True, epilog=SETTINGS),
    "data": Verb("build", "show what recordings, frames or a data set hold", ("axonnx.loading:describe_data",),
                 "build:data", ("picture", "json"), ("limit",)),
    "export": Verb("build", "collapse a trained network into one ONNX file",
                   ("axonnx.trained_run:Run", "axonnx.trained_run:Run.export"), "build:export"),
    "import": Verb("build", "bring in a network of snnTorch, SpikingJelly, Norse or NIR",
                   ("axonnx.trained_run:import_network",), "build:import_", without=("run", "value"), settings=True,
                   epilog=SETTINGS),
    "verify": Verb("prove", "compare a file with its training network, bit for bit",
                   (LOAD, "axonnx.model:Model.verify"), "prove:verify", ("json",), ("engine",)),
    "eval": Verb("prove", "accuracy and calibration of files, or of a run",
                 (LOAD, "axonnx.model:Model.evaluate", "axonnx.trained_run:Run.evaluate"), "prove:evaluate",
                 ("plot", "json"), ("engine", "device", "folder")),
    "profile": Verb("prove", "spikes, operations, time and energy of files", (LOAD, "axonnx.model:Model.profile"),
                    "prove:profile", ("plot", "json"), ("engine", "seed")),
    "inspect": Verb("prove", "show what a file promises and does", (LOAD, "axonnx.model:Model.inspect"),
                    "prove:inspect", ("json",), ("engine",)),
    "report": Verb("prove", "one HTML page with all that is known of a file", (LOAD, "axonnx.model:Model.report"),
                   "prove:report", without=("engine", "seed", "shown")),
    "run": Verb("deploy", "run a file on events, frames or images", (LOAD, "axonnx.model:Model.stream"), "deploy:run",
                ("animate", "json", "jobs"), epilog=SOURCES),
    "serve": Verb("deploy", "run a file on many live streams, over WebSocket", (LOAD, "axonnx.model:Model.serve"),
                  "deploy:serve", without=("grace", "seed"), epilog=STREAMS),
    "compile": Verb("deploy", "a file as source code that runs without Python", (LOAD, "axonnx.model:Model.compile"),
                    "deploy:compile_", without=("engine",)),
    "sweep": Verb("study", "train with many settings and seeds, and name the best", ("axonnx.trained_run:Run.sweep",),
                  "build:sweep", ("json",), settings=True,
                  epilog="Settings have several values: --optimiser.weight_rate 1e-3,3e-3 --variant.name sbnn,bbnn"),
    "demo": Verb("tools", "the whole pipeline on built-in data, in minutes", ("axonnx.cli.tools:run_demo",),
                 "tools:demo"),
    "doctor": Verb("tools", "what is installed, and whether every engine gives the right bits",
                   ("axonnx.examination:examine",), "tools:doctor", ("json",)),
    "completion": Verb("tools", "a script that completes these words in bash, zsh or tcsh",
                       ("axonnx.cli.tools:completion_script",), "tools:completion"),
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the return value is the exit code: 0 fine, 1 verification failed, 2 wrong use."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    warnings.formatwarning = _plain_warning
    # Torch's threads, when they have nothing to do, would keep the processors from the core's.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if words and words[0] in VERBS:
        return guarded(f"axonnx {words[0]}", lambda: run_verb(words[0], words[1:]))
    return guarded("axonnx", lambda: _without_verb(words))


def _plain_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """Format a warning for people; those of other libraries keep their category."""
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
    """Return what ``axonnx --help`` prints."""
    lines = [
        "axonnx: train binary and spiking networks, ship them as one ONNX file, run it on events",
        "",
        "usage: axonnx VERB [options]      axonnx VERB --help      axonnx --version",
    ]
    for group in dict.fromkeys(verb.group for verb in VERBS.values()):
        lines += ["", f"{group}:"]
        lines += [f"  {name:<12}{verb.does}" for name, verb in VERBS.items() if verb.group == group]
    return "\n".join([*lines, "", "Every verb takes --quiet (no progress) and --threads N."])


def run_verb(name: str, words: Sequence[str]) -> int:
    """Run one verb; what is wrong with its words or files is raised."""
    from axonnx.cli.options import read

    module, function = VERBS[name].place.split(":")
    options = read(name, VERBS[name], words)
    code: int = getattr(import_module(f"axonnx.cli.{module}"), function)(options)
    return code


def _unknown(word: str) -> str:
    near = get_close_matches(word, VERBS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"axonnx: unknown verb {word!r}; known are: {', '.join(VERBS)}.{hint} See axonnx --help."
