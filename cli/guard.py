"""How every verb ends: what the user can mend is one line and exit code 2, our own faults show their traceback."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TextIO, cast

from axonnx.base.errors import AxonnxError
from axonnx.base.plain_text import PlainStream, raw_stream
from axonnx.base.progress import requested, signals_handled

FINE, FAILED, WRONG_USE = 0, 1, 2
OUR_FAULT = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED, HUNG_UP, TERMINATED = 130, 129, 143  # 128 + the number of the signal
READER_GONE = 141  # as a shell reports a program that a closed pipe ended; never taken for success
EXTRAS = {"starlette": "serve", "uvicorn": "serve", "websockets": "serve"}  # what brings a package
REPORT = "this is a fault of axonnx, not of yours: please report it with the lines above (docs/security.md says where)"


def guarded(name: str, action: Callable[[], int]) -> int:
    """Run ``action`` and return its exit code; its output has left the process when this returns.

    A command that SIGTERM or SIGHUP ended returns 128 + the signal's number, also if it ended in good order. Ctrl-C is
    the usual end of a live source, so it does not change the code of a command that came to its end.
    """
    _replace_what_cannot_be_encoded()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream and cast("TextIO", PlainStream(raw_stream(stream))) for stream in before)
    try:
        with signals_handled():
            code = _exit_code(name, action)
            number = requested()
    finally:
        sys.stdout, sys.stderr = before
    return 128 + number if code in (FINE, WRONG_USE) and number not in (0, signal.SIGINT) else code


def _exit_code(name: str, action: Callable[[], int]) -> int:
    try:
        try:
            return action()
        finally:  # also where argparse ends --help and wrong options by SystemExit
            _flush()
    except BrokenPipeError:  # the reader has gone, as by | head
        _discard_output()
        return READER_GONE
    except KeyboardInterrupt as ended:
        return _say(f"\n{name}: {_interrupted(ended)}", 128 + (requested() or signal.SIGINT))
    except ModuleNotFoundError as missing:
        return _missing_package(name, missing)
    except AxonnxError as fault:
        text = re.sub(r"\n(?! )", "\n  ", str(fault))  # so that no line of it looks like one of ours
        return _say(f"{name}: {text}{_flags(fault.options)}{_settings(fault.settings)}", WRONG_USE)
    except OSError as fault:
        _discard_output_of_a_full_device()
        return _say(f"{name}: {_input_output(fault)}", WRONG_USE)
    except MemoryError as fault:
        wanted = str(fault) or "a request for memory was refused"
        return _say(f"{name}: not enough memory: {wanted}. Give less at a time, or more memory", WRONG_USE)
    except Exception:
        sys.stderr.write(traceback.format_exc())
        return _say(f"{name}: {REPORT}", OUR_FAULT)


def _interrupted(ended: KeyboardInterrupt) -> str:
    """Return which signal ended the command, and the notes of the code that it interrupted."""
    number = requested() or signal.SIGINT
    how = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    return "; ".join([how, *getattr(ended, "__notes__", [])])


def _flags(options: Sequence[str]) -> str:
    """Arguments of the library as options of the command line."""
    flags = ", ".join(f"--{option.replace('_', '-')}" for option in options)
    return f" ({flags})" if flags else ""


def _settings(settings: Mapping[str, object]) -> str:
    """Return settings that are missing, ready to copy behind the command."""
    words = [
        f"--{key} {value:g}" if isinstance(value, float) else f"--{key} {value}" for key, value in settings.items()
    ]
    return f". Add: {' '.join(words)}" if words else ""


def _say(line: str, code: int) -> int:
    with suppress(OSError):  # where nobody listens the code has to do
        print(line, file=sys.stderr, flush=True)
    return code


def _input_output(fault: OSError) -> str:
    """Return the file and the system's reason; a device without a name is standard output."""
    reason = fault.strerror or str(fault) or type(fault).__name__
    return f"{fault.filename if fault.filename is not None else 'input or output'}: {reason}"


def _missing_package(name: str, missing: ModuleNotFoundError) -> int:
    if (missing.name or "").startswith("axonnx"):
        sys.stderr.write(traceback.format_exc())
        return _say(f"{name}: {REPORT}", OUR_FAULT)
    needs = f"needs the package {missing.name!r}, which is not installed"
    extra = EXTRAS.get(missing.name or "", "train,report")
    return _say(f"{name}: {needs}. Install what it needs with: pip install 'axonnx[{extra}]'", WRONG_USE)


def _replace_what_cannot_be_encoded() -> None:
    """Print question marks for characters that the terminal does not have."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def _discard_output() -> None:
    """Discard what is still buffered: it has nowhere to go, and the interpreter must not try again at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _discard_output_of_a_full_device() -> None:
    try:
        _flush()
    except OSError:
        _discard_output()


def _flush() -> None:
    if sys.stdout is not None:  # as it is where the caller closed it
        sys.stdout.flush()
