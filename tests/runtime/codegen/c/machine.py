"""Generated C, compiled by this machine's compiler and called by ctypes."""

import ctypes
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.codegen.c.network_source import FLAGS, c_source
from axonnx.runtime.codegen.layout import LANES, Layout
from axonnx.runtime.program.instructions import Program

from ....compilers import find_compiler, needs_compiler

__all__ = ["Machine", "Network", "needs_compiler"]

ARRAYS = ("MEMORY", "OUTSIDE", "EVENTS")  # before the bits and packed inputs of a state
STRICT = ("-DAXONNX_KEEP_LAYERS", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wno-psabi", "-fPIC", "-shared")


class Layer(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        *((field, ctypes.c_int) for field in ("size", "places", "spikes", "membrane")),
    ]


class Machine:
    """Programs by name in one library; ``quick`` leaves out what the compiler optimises, for there are many.

    Laid out for vectors, or in plain C99 for a microcontroller.
    """

    def __init__(self, programs: Mapping[str, Program], quick: bool = False, vectors: bool = False) -> None:
        self.programs, self.padding = programs, LANES if vectors else 1
        self.texts = {name: c_source(program, name, vectors) for name, program in programs.items()}
        with TemporaryDirectory() as folder:
            for files in self.texts.values():
                for file, text in files.items():
                    (Path(folder) / file).write_text(text, "utf-8")
            sources = [str(Path(folder) / f"{name}{part}.c") for name in programs for part in ("", "_core")]
            command = [
                find_compiler(),
                *FLAGS,
                *STRICT,
                *(["-O0"] if quick else []),
                *sources,
                "-o",
                f"{folder}/all.so",
            ]
            subprocess.run(command, check=True)
            self.library = ctypes.CDLL(f"{folder}/all.so")

    def network(self, name: str, seed: int = 0, sample: int = 0) -> "Network":
        return Network(self, name, seed, sample)

    def trace(self, name: str, values: NDArray, seed: int = 0, sample: int = 0) -> dict[str, NDArray]:
        """Traces [T, …] and members' logits [T, members, classes] of a network on counts or pixel values [T, …]."""
        network, seen = self.network(name, seed, sample), []
        for frame in values:
            assert network.step(frame) == 0
            seen.append({**network.layers(), "logits": network.logits()})
        return {key: np.stack([step[key] for step in seen]) for key in seen[0]}


class Network:
    """One network's memory and functions."""

    def __init__(self, machine: Machine, name: str, seed: int, sample: int) -> None:
        self.machine, self.name, self.program = machine, name, machine.programs[name]
        found = re.findall(rf"#define {name.upper()}_([A-Z]+) (\d+)", machine.texts[name][f"{name}.h"])
        sizes = dict(reversed(found))  # the first of TRACE is that of kept layers
        floats, self.traced = (sum(int(sizes[key]) for key in keys) for keys in (ARRAYS, ("TRACE",)))
        self.trace_at = floats + (int(sizes["BITS"]) + int(sizes["PACKED"]) + 1) // 2
        whole = self.trace_at + self.traced + 2 * int(sizes["ROWS"]) + 16
        self.memory = np.full(whole, np.nan, np.float32)
        self.call("init", ctypes.c_uint64(seed), ctypes.c_uint32(sample))

    def call(self, function: str, *arguments: object) -> int:
        found = getattr(self.machine.library, f"{self.name}_{function}")
        return found(self.memory.ctypes.data_as(ctypes.c_void_p), *arguments)

    def step(self, frame: NDArray) -> int:
        given = np.ascontiguousarray(frame, np.float32)
        return self.call("step", given.ctypes.data_as(ctypes.c_void_p))

    def step_events(self, events: NDArray) -> int:
        return self.call("step_events", events.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(events)))

    def logits(self) -> NDArray:
        contract = self.program.contract
        found = np.empty((contract.collapse.members, len(contract.classes)), np.float32)
        self.call("logits", found.ctypes.data_as(ctypes.c_void_p))
        return found

    def layers(self) -> dict[str, NDArray]:
        layers, found = self.program.layers, {}
        rows = (Layer * len(layers)).in_dll(self.machine.library, f"{self.name}_layers")
        for layer, row in zip(layers, rows, strict=True):
            assert (row.name.decode(), row.size) == (layer.name, layer.size)
            for kind, at in (("spikes", row.spikes), ("membrane", row.membrane)):
                if at >= 0:
                    layout, begin = Layout(layer.shape, self.machine.padding), self.trace_at + at
                    found[f"{kind}/{layer.name}"] = layout.unpack(self.memory[begin : begin + layout.size].copy())
        return found
