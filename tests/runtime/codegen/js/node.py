"""JavaScript networks in one node process that waits for jobs; what goes in and comes out are files of float32."""

import json
import shutil
import subprocess
import weakref
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from numpy.typing import NDArray

from axonnx.runtime.codegen.js.module_text import module_text
from axonnx.runtime.program.instructions import Program, trace_sources

DRIVER = """
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

function everything(job, { create }) {
  const bytes = readFileSync(job.input), given = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const size = given.length / job.steps, found = [], network = create({ seed: job.seed, sample: job.sample });
  for (let step = 0; step < job.steps; step++) {
    network.step(given.subarray(step * size, (step + 1) * size));
    for (const layer of network.layers) found.push(...layer.spikes, ...(layer.membrane ?? []));
    for (const member of network.memberLogits()) found.push(...member);
  }
  return Float32Array.from(found);
}

for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  try {
    const module = await import(job.module);
    if (job.output) writeFileSync(job.output, everything(job, module));
    const answer = job.script ? await new Function('module', `return (async () => {${job.script}})()`)(module) : null;
    console.log(JSON.stringify({ answer }));
  } catch (fault) {
    console.log(JSON.stringify({ fault: String(fault) }));
  }
}
"""

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node here; install it: apt-get install nodejs")


class Node:
    """A node process with a folder of its own."""

    def __init__(self) -> None:
        self.folder = TemporaryDirectory()
        driver, self.jobs = Path(self.folder.name) / "driver.mjs", 0
        driver.write_text(DRIVER, "utf-8")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(["node", str(driver)], **pipes)
        weakref.finalize(self, self._end, self.process)

    def trace(self, program: Program, values: NDArray, seed: int = 0, sample: int = 0) -> dict[str, NDArray]:
        """Traces [T, …] and members' logits [T, members, classes] of a network on counts or pixel values [T, …]."""
        entering, leaving = (Path(self.folder.name) / f"{self.jobs}.{kind}" for kind in ("in", "out"))
        np.ascontiguousarray(values, "<f4").tofile(entering)
        files = {"input": str(entering), "output": str(leaving), "steps": len(values)}
        self._job(module_text(program), {**files, "seed": seed, "sample": sample})
        return split(np.fromfile(leaving, "<f4"), program, len(values))

    def ask(self, text: str, script: str) -> object:
        """What a function body makes of ``module``, as JSON."""
        return self._job(text, {"script": script})

    def _job(self, text: str, job: dict) -> object:
        module = Path(self.folder.name) / f"{self.jobs}.mjs"
        module.write_text(text, "utf-8")
        self.jobs += 1
        self.process.stdin.write(json.dumps({"module": str(module), **job}) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        assert "fault" not in reply, reply["fault"]
        return reply["answer"]

    @staticmethod
    def _end(process: subprocess.Popen) -> None:
        process.stdin.close()
        process.stdout.close()
        process.wait(10)


@cache
def node() -> Node:
    """The one process that all tests share."""
    return Node()


def split(found: NDArray, program: Program, steps: int) -> dict[str, NDArray]:
    """All that a network said, by name."""
    sources = trace_sources(program)
    names = [n for layer in program.layers for n in (f"spikes/{layer.name}", f"membrane/{layer.name}") if n in sources]
    shapes = [program.buffers[sources[name]].shape for name in names]
    shapes.append((program.contract.collapse.members, len(program.contract.classes)))
    parts = np.split(found.reshape(steps, -1), np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1], axis=1)
    return {
        name: part.reshape(steps, *shape) for name, part, shape in zip([*names, "logits"], parts, shapes, strict=True)
    }
