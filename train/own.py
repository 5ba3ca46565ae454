"""One's own network: its code is run, its constructor given what it takes, and the result tried once."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.models import BinaryNetwork, Network, SpikingNetwork
from axonnx.models.checking import check_network
from axonnx.train.config.own import OwnSource

BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def load_class(source: OwnSource) -> type[Network]:
    """Run the source and take the class out of it."""
    module = _module(source)
    kind = getattr(module, source.name, None)
    if kind is None:
        known = [
            name for name, value in vars(module).items() if _is_network(value) and value.__module__ == module.__name__
        ]
        raise AxonnxError(
            f"{source.where}: has no class {source.name!r}; its networks are {', '.join(known) or 'none'}"
        )
    if not _is_network(kind):
        raise AxonnxError(
            f"{source.where}: {source.name} is no network; derive it from axonnx.models.SpikingNetwork (with time) or "
            f"BinaryNetwork (without)"
        )
    found: type[Network] = kind
    return found


def reference(kind: type[Network]) -> str:
    """Return what a configuration calls this class: its file and its name."""
    name, module = kind.__qualname__, sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if kind.__module__ == "__main__" or file is None or "." in name:
        raise AxonnxError(
            f"{name}: a run keeps the file of its network's class, and this one stands in {kind.__module__}; write it "
            f"at the top of a file of its own, and import it from there"
        )
    return f"{file}:{name}"


def build(
    source: OwnSource, given: Mapping[str, Any], arguments: Mapping[str, Any], needed: Mapping[str, str]
) -> Network:
    """Make the network from those things ``given`` that its constructor takes, and its own ``arguments``.

    ``needed``: those that it must take, each with the setting that would otherwise mean nothing.
    """
    kind = load_class(source)
    steps: int | None = given["steps"]
    if issubclass(kind, SpikingNetwork) != (steps is not None):
        have, base = ("no time axis", "BinaryNetwork") if steps is None else ("a time axis", "SpikingNetwork")
        raise AxonnxError(f"the data has {have}, so {source.name} must be an axonnx.models.{base}")
    options = constructor_arguments(kind, given, arguments)
    for name, setting in needed.items():
        if name not in options:
            raise AxonnxError(
                f"{setting} means nothing to {source.name}: let its constructor take {name!r} and hand it to the "
                f"layers, or leave the setting out"
            )
    with _explained(source, f"{source.name}({', '.join(options)})"):
        network = kind(**options)
    with _explained(source, f"a trial pass of {source.name}"):
        check_network(network, given["shape"], given["classes"])
    return network


def constructor_arguments(
    kind: type[Network], given: Mapping[str, Any], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what the constructor is called with; what is missing or unknown is refused by name."""
    parameters = inspect.signature(kind).parameters
    takes = {name: found for name, found in parameters.items() if found.kind in BY_NAME}
    anything = any(found.kind is inspect.Parameter.VAR_KEYWORD for found in parameters.values())
    for name in arguments:
        if name in given:
            raise AxonnxError(f"model.arguments.{name}: follows from the data and the other settings; leave it out")
        if name not in takes and not anything:
            near = get_close_matches(name, takes, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(takes) or 'nothing'}"
            raise AxonnxError(f"model.arguments.{name}: {kind.__name__} has no such argument; {hint}")
    options = {name: value for name, value in given.items() if name in takes} | dict(arguments)
    missing = [name for name, one in takes.items() if one.default is inspect.Parameter.empty and name not in options]
    if missing:
        raise AxonnxError(
            f"{kind.__name__} needs {', '.join(missing)}; give model.arguments = {{ {missing[0]} = … }} (by themselves "
            f"come {', '.join(given)})"
        )
    return options


def _module(source: OwnSource) -> ModuleType:
    """Return the module that the source makes; the same bytes make one module."""
    name = _module_name(source)
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__file__ = source.where
    sys.modules[name] = module  # data classes look themselves up here
    try:
        with _explained(source, "its code"):
            exec(compile(source.code, source.where, "exec"), vars(module))
    except AxonnxError:
        del sys.modules[name]
        raise
    return module


def _module_name(source: OwnSource) -> str:
    return f"axonnx_own_{source.sha256}"


@contextmanager
def _explained(source: OwnSource, what: str) -> Iterator[None]:
    """Faults of the user's code as the user's, with the line."""
    try:
        yield
    except (Exception, SystemExit) as fault:
        frames = traceback.extract_tb(fault.__traceback__)
        file = getattr(sys.modules.get(_module_name(source)), "__file__", source.where)
        lines = [frame.lineno for frame in frames if frame.filename == file]
        where = f"{source.where}, line {lines[-1]}" if lines else source.where
        kind = "" if type(fault) in (ValueError, AxonnxError) else f"{type(fault).__name__}: "
        raise AxonnxError(f"{where}: {what} failed: {kind}{fault}{_hint(fault)}") from fault


def _hint(fault: BaseException) -> str:
    if isinstance(fault, ImportError):
        return "; an own network is one file, and what it imports must be installed"
    if isinstance(fault, AttributeError) and "'NoneType'" in str(fault):
        return "; run.state_of(layer) is None at the first step: begin with zeros there"
    if isinstance(fault, TypeError) and "'run'" in str(fault):
        return "; layers of axonnx.models are called as layer(x, run)"
    return ""


def _is_network(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, SpikingNetwork | BinaryNetwork)
