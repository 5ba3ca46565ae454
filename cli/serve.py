"""``axonnx serve``: many live streams through one file, over WebSocket."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from axonnx.base.errors import AxonnxError
from axonnx.cli.options import add_fit_options, add_threads, fit_of, from_one, from_zero, origin
from axonnx.runtime.engines.choose import ENGINES
from axonnx.runtime.model import load
from axonnx.serve.app import LOOPBACK
from axonnx.serve.limits import Limits
from axonnx.serve.server import serve
from axonnx.serve.service import Rules, Service

TOKEN = "AXONNX_TOKEN"


def main(arguments: Sequence[str]) -> int:
    """``axonnx serve``."""
    options = make_parser().parse_args(arguments)
    token = read_token(options.token_file)
    if options.host not in LOOPBACK and token is None:
        print(
            f"axonnx serve: {options.host} can be reached by others and no token is asked for (--token-file)",
            file=sys.stderr,
        )
    service = make_service(options)
    serve(service, options.host, options.port, token, ready=lambda address: _say_ready(service, address))
    counts = service.metrics
    print(
        f"stopped after {counts.streams:,} streams, {counts.events:,} events, {counts.decisions:,} decisions; "
        f"{service.saved.count():,} sessions can be resumed"
    )
    return 0


def make_service(options: argparse.Namespace) -> Service:
    """What the options say, with the file loaded and compiled."""
    return Service(
        load(options.model, options.engine),
        Rules(options.seed, options.continuous, options.stop_at, options.origin, fit_of(options)),
        Limits(
            clients=options.clients,
            message_bytes=options.message_kib * 2**10,
            memory_bytes=options.memory_mib * 2**20,
            grace_s=options.grace,
        ),
        options.sessions,
        options.threads,
    )


def read_token(path: Path | None) -> str | None:
    """The first line of a file, or what the environment says; words of the command line can be seen by others."""
    if path is None:
        return os.environ.get(TOKEN) or None
    lines = path.read_text("utf-8").splitlines()
    if not lines or not lines[0].strip():
        raise AxonnxError(f"{path}: holds no token; expected one in its first line")
    return lines[0].strip()


def _say_ready(service: Service, address: str) -> None:
    engine = f"engine {service.model.engine.name}, {service.threads} threads"
    print(f"{service.model.program.name} is served at {address} ({engine}); Ctrl-C stops it", flush=True)


def make_parser() -> argparse.ArgumentParser:
    """The options of the verb."""
    parser = argparse.ArgumentParser(
        "axonnx serve",
        description="Run an exported file on many live streams: events come and decisions go over WebSocket.",
        epilog="/stream takes 16-byte records and gives JSON, / shows a stream live, /health and /metrics are for "
        f"machines; docs/serving.md has it all. A token is read from --token-file or from {TOKEN}.",
        allow_abbrev=False,
    )
    limits = Limits()
    parser.add_argument("model", help="a file of axonnx export")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s, this machine only)")
    parser.add_argument("--port", type=from_zero, default=8080, help="0 is any free one (default: %(default)s)")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="clients must bring what is in its first line")
    parser.add_argument("--sessions", type=Path, metavar="DIR", help="where streams are saved and resumed from")
    parser.add_argument("--engine", choices=ENGINES, default="auto", help="inference engine (default: %(default)s)")
    add_threads(parser, "one for each processor")
    most = parser.add_argument_group("limits")
    for name, kind, value, unit, about in (
        ("--clients", from_one, limits.clients, "N", "streams at once"),
        ("--memory-mib", from_one, limits.memory_bytes >> 20, "N", "of the process; no new stream begins above it"),
        ("--message-kib", from_one, limits.message_bytes >> 10, "N", "of one message"),
        ("--grace", float, limits.grace_s, "S", "seconds for streams to finish their message when the server stops"),
    ):
        most.add_argument(name, type=kind, default=value, metavar=unit, help=f"{about} (default: %(default)s)")
    rules = parser.add_argument_group("every stream")
    rules.add_argument("--seed", type=from_zero, default=0, help="of a stochastic file's noise (default: 0)")
    rules.add_argument("--continuous", action="store_true", help="carry the state over from one window to the next")
    rules.add_argument("--stop-at", type=float, metavar="P", help="decide as soon as a class has this probability")
    rules.add_argument(
        "--origin", type=origin, metavar="first|US", help="where the first window begins (default: as the file says)"
    )
    add_fit_options(rules)
    return parser
