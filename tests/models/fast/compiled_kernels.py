"""Compile Triton kernels ahead of time for GPUs that are not here: ``python -m tests.models.fast.compiled_kernels 80``.

Prints, for each kernel, what ptxas says: registers of a thread, bytes of stack (spills), bytes of shared memory.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from axonnx.models.fast import lif_triton, triton_kernels
from axonnx.models.fast.triton_kernels import PRODUCT, STRAIGHT, WEIGHTED

TOOLS = Path(triton.__file__).parent / "backends/nvidia/bin"
WHOLE = {"seed": "i64"} | dict.fromkeys(
    ["first_step", "steps", "batch", "channels", "pixels", "padded", "terms", "count"], "i32"
)
FLOATS = {"scale": "fp32", "option": "fp32"}
LEARNED = ["by_decay", "by_threshold"]
STATE = ["membrane0", "variance0", "spikes0", "by_gap", "by_membrane", "by_variance", "v_grads", "noise"]
COMMON = {"OWN_DECAY": 0, "OWN_THRESHOLD": 0, "SPREAD": PRODUCT, "DRAWN": True, "TO_ZERO": False}
MAPS = {"BC": 64, "BP": 8}  # a residual stage of 64 channels


def recurrent(neurons):
    return COMMON | lif_triton._recurrent_flags(None, neurons)


# Of each kernel: constants, pointers that are None, and warps.
KERNELS = {
    "forward, maps": ("forward", COMMON | MAPS | {"ESTIMATOR": STRAIGHT, "RELAXED": False}, STATE, 4),
    "backward, maps, IW-ST, all gradients": (
        "backward",
        COMMON | MAPS | {"ESTIMATOR": WEIGHTED, "READS_NOISE": False, "TERMS": 4},
        STATE,
        4,
    ),
    **{
        f"recurrent forward, {n}": (
            "recurrent_forward",
            recurrent(n) | {"ESTIMATOR": STRAIGHT, "RELAXED": False},
            [*STATE, "each"],
            lif_triton._warps(n),
        )
        for n in (256, 512)
    },
    **{
        f"recurrent backward, {n}, IW-ST": (
            "recurrent_backward",
            recurrent(n) | {"ESTIMATOR": WEIGHTED, "READS_NOISE": False},
            [*STATE, *LEARNED, "each"],
            lif_triton._warps(n),
        )
        for n in (256, 512)
    },
}


def compiled(name, capability):
    """Registers, stack and shared memory of a kernel."""
    function, constants, absent, warps = KERNELS[name]
    kernel = getattr(triton_kernels, function)
    constants = {**constants, **{each: None for each in absent if each in kernel.arg_names}}
    types = WHOLE | FLOATS | {"kept": "*u8", "gap": "*fp16"}
    if function == "recurrent_forward":
        types["weights"] = "*bf16"
    signature = {each: "constexpr" if each in constants else types.get(each, "*fp32") for each in kernel.arg_names}
    made = triton.compile(
        ASTSource(fn=kernel, signature=signature, constexprs=constants),
        target=GPUTarget("cuda", capability, 32),
        options={"num_warps": warps, "enable_fp_fusion": False},
    )
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        command = [TOOLS / "cuobjdump", "-res-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
    usage = dict(part.split(":")[:2] for part in told.stdout.split() if part.count(":") == 1)
    fused = sum("fma.rn.f32" in line for line in made.asm["ptx"].splitlines())
    return {
        "registers": int(usage["REG"]),
        "stack": int(usage["STACK"]),
        "shared": made.metadata.shared,
        "threads": 32 * warps,
        "fused": fused,
    }


if __name__ == "__main__":
    chosen = sys.argv[2:] or list(KERNELS)
    print(json.dumps({name: compiled(name, int(sys.argv[1])) for name in chosen}))
