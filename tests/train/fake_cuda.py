"""Whole training runs on *fake* CUDA tensors, with a build of torch for CPUs: shapes and devices, and no numbers.

Run as ``python -m tests.train.fake_cuda GUARDS CASES.json``: torch must be loaded after the guards. It prints, for each
case, what a GPU would have seen: launches, bytes, waits for the device with file and line, and operators on the CPU.
"""

import ctypes
import json
import os
import sys
import traceback
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

if __name__ == "__main__":
    for guard in ("accelerator.so", "device.so"):
        ctypes.CDLL(str(Path(sys.argv[1]) / guard), ctypes.RTLD_GLOBAL)

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ROOT = Path(__file__).resolve().parents[2]
WAITS = ("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "_unique", "unique")
# What reads and writes nothing: views, and room that is not filled.
_FREE = """
view _unsafe_view unsqueeze squeeze expand t transpose permute slice select unbind detach as_strided
alias split split_with_sizes _reshape_alias narrow unflatten diagonal lift_fresh movedim chunk
tensor_split reshape empty empty_like new_empty empty_strided new_empty_strided resize_ set_
record_stream is_pinned
"""
FREE = frozenset(_FREE.split())
PARTS = {"convolution_backward": 3}  # operators of several launches


def place() -> str:
    """The innermost line of the project that is running."""
    for frame in reversed(traceback.extract_stack()[:-2]):
        file = Path(frame.filename)
        if file.is_relative_to(ROOT) and file.name != "fake_cuda.py" and ".venv" not in file.parts:
            return f"{file.relative_to(ROOT)}:{frame.lineno}"
    return "torch"


def number(tensor):
    """A number for whoever asks a tensor that has none."""
    return tensor.dtype == torch.bool or (0.5 if tensor.dtype.is_floating_point else 1)


class Ledger(TorchDispatchMode):
    """What reaches the device."""

    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        self.launches, self.kernels, self.bytes = 0, Counter(), 0
        self.waits, self.on_cpu, self.copies = Counter(), Counter(), Counter()

    def launch(self, name, tensors, parts=1):
        self.launches += parts
        self.kernels[name] += parts
        self.bytes += sum({id(x): x.numel() * x.element_size() for x in tensors if x.device.type == "cuda"}.values())

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        options, name = options or {}, operator.overloadpacket.__name__
        if operator.namespace != "aten":
            return operator(*arguments, **options)
        given = [x for x in tree_leaves((arguments, options)) if isinstance(x, torch.Tensor)]
        on_device = any(x.device.type == "cuda" for x in given)
        if name.startswith(WAITS) and on_device:
            self.waits[f"{place()} {name}"] += 1
        if name.startswith("_local_scalar_dense") and isinstance(given[0], FakeTensor):
            return number(given[0])
        result = operator(*arguments, **options)
        made = [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
        if name in ("_to_copy", "copy_") and given:
            source, target = (given[-1], given[0]) if name == "copy_" else (given[0], made[0])
            if (source.device.type, target.device.type) == ("cuda", "cpu"):
                self.waits[f"{place()} copied to the host"] += 1
            elif (source.device.type, target.device.type) == ("cpu", "cuda"):
                self.copies[place()] += source.numel() * source.element_size()
        if on_device or any(x.device.type == "cuda" for x in made):
            if name not in FREE:
                self.launch(name, [*given, *made], PARTS.get(name, 1))
        elif name not in FREE:
            self.on_cpu[f"{place()} {name}"] += 1
        return result


class _Generator:
    """A generator of any device that draws nothing."""

    def __init__(self, device="cpu"):
        self.device = torch.device(device)

    def manual_seed(self, seed):
        return self


def _to(module, *arguments, **options):
    """``Module.to`` with new parameters: torch cannot swap fake tensors, which have weak references."""
    done = {}

    def moved(x):
        return done.setdefault(id(x), x.detach().to(*arguments, **options))

    for part in module.modules():
        for name, x in part._parameters.items():
            if x is not None:
                part._parameters[name] = torch.nn.Parameter(moved(x), requires_grad=x.requires_grad)
        for name, x in part._buffers.items():
            if x is not None:
                part._buffers[name] = moved(x)
    return module


@contextmanager
def fake_cuda():
    """Let everything that is made inside be fake; devices may be ``cuda``. Yields the ledger."""
    from axonnx.models.fast import lif_triton
    from axonnx.train import feed

    ledger, randn, numpy, tolist = Ledger(), torch.randn, torch.Tensor.numpy, torch.Tensor.tolist
    randint, launch = torch.randint, lif_triton.launch

    def as_numpy(self, *given, **options):
        if not isinstance(self, FakeTensor):
            return numpy(self, *given, **options)
        assert self.device.type == "cpu", "numpy() of a CUDA tensor"
        return np.zeros(tuple(self.shape), str(self.dtype).removeprefix("torch."))

    def as_list(self):
        if not isinstance(self, FakeTensor):
            return tolist(self)
        if self.device.type == "cuda":
            ledger.waits[f"{place()} tolist"] += 1
        return np.full(tuple(self.shape), number(self)).tolist()

    def launched(kernel, grid, *given, **options):
        ledger.launch(kernel.fn.__name__, [x for x in given if isinstance(x, torch.Tensor)])
        launch(kernel, grid, *given, **options)

    class Inline(ThreadPoolExecutor):
        """A thread that is this one: modes of torch are those of their thread."""

        def submit(self, function, *given):
            done = Future()
            done.set_result(function(*given))
            return done

    changes = [
        (feed, "ThreadPoolExecutor", Inline),
        (torch, "randn", lambda *given, generator=None, **options: randn(*given, **options)),
        (torch, "randint", lambda *given, generator=None, **options: randint(*given, **options)),
        (torch.Tensor, "numpy", as_numpy),
        (torch.Tensor, "tolist", as_list),
        (torch, "Generator", _Generator),
        (torch.random, "fork_rng", lambda devices=(), **_: nullcontext()),
        (torch.nn.Module, "to", _to),
        (torch.Tensor, "pin_memory", lambda self: self),
        (lif_triton, "launch", launched),
    ]
    with ExitStack() as stack:
        for owner, name, value in changes:
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(ledger)
        yield ledger


def run(case):
    """Train one epoch of a tiny configuration; ``plant`` is a fault in a training step."""
    from dataclasses import replace

    import axonnx.train.loop as loop
    from axonnx.train.build import make_network, prepare
    from axonnx.train.config.read import as_tree, check_config, merged, shipped

    start = {"data": shipped()[case["base"]]["tree"]["data"]}
    config = check_config(merged(start, as_tree({"device": "cuda", "optimiser.epochs": 1, **case["settings"]})), "case")
    prepared = prepare(config.data)
    splits, size = prepared.splits, config.optimiser.batch_size
    few = replace(
        splits,
        train=splits.train.subset(np.arange(case.get("batches", 3) * size)),
        test=splits.test.subset(np.arange(8)),
    )
    prepared = replace(prepared, splits=few)
    with fake_cuda() as ledger:
        network = make_network(config, prepared)
        plant = case.get("plant")
        if plant:
            original = loop._total_norm
            loop._total_norm = lambda norms: FAULTS[plant](original(norms))
        try:
            loop.fit(network, prepared, config)
        finally:
            if plant:
                loop._total_norm = original
    return told(ledger)


def told(ledger):
    return {
        "launches": ledger.launches,
        "kernels": dict(ledger.kernels.most_common(24)),
        "bytes": ledger.bytes,
        "waits": dict(ledger.waits),
        "on_cpu": dict(ledger.on_cpu),
        "copies": dict(ledger.copies),
    }


def step(case):
    """One forward and backward pass of a network, after one that is not counted."""
    from axonnx import models
    from axonnx.models.fast.backend import computed_by
    from axonnx.train.objective import Objective

    with fake_cuda() as ledger, computed_by(case.get("backend", "auto")):
        network = getattr(models, case["network"])(variant=models.variant("sbnn")).to("cuda")
        shape = case["shape"]
        x, labels = torch.zeros(shape, device="cuda"), torch.zeros(shape[1], dtype=torch.long, device="cuda")
        for _ in range(2):
            ledger.clear()
            output = network(x, models.Sample())
            Objective(1e-6)(network, output, labels).total.backward()
            for parameter in network.parameters():
                parameter.grad = None
    return told(ledger)


def _asks(total):
    total.item()
    return total


def _elsewhere(total):
    return total * torch.ones(3).sum()


FAULTS = {"item": _asks, "cpu": _elsewhere}

if __name__ == "__main__":
    found = {}
    for name, each in json.loads(sys.argv[2]).items():
        try:
            found[name] = step(each) if "network" in each else run(each)
        except Exception as fault:
            frames = [f for f in traceback.extract_tb(fault.__traceback__) if str(ROOT) in f.filename]
            found[name] = {"fault": f"{type(fault).__name__}: {fault} at {frames[-1].filename}:{frames[-1].lineno}"}
    print(json.dumps(found), flush=True)
    os._exit(0)  # threads that feed batches may outlive a device that does not exist, and end the process with an abort
