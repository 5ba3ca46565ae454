"""Networks in a browser: our JavaScript in Chromium, and stock onnxruntime-web on the file itself, bit for bit."""

import json
import os
import re
import shutil
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path

import numpy as np
import pytest

from axonnx.runtime.codegen.js.module_text import script_text
from axonnx.runtime.model import load

from ..codegen.js.node import split
from ..report.browser import chromium, visit
from .comparing import Comparison

NODE_MODULES = Path(os.environ.get("AXONNX_NODE_MODULES", Path(__file__).parents[3] / ".node" / "node_modules"))
CASES = (
    ("binary-resnet", "mfa"),
    ("mlp", "sampled"),
    ("mlp-zero", "int8"),
    ("recurrent-decays", "stochastic"),
    ("resnet-counts", "mfa"),
    ("resnet-bntt", "mfa"),
    ("two-branches", "stochastic"),
)
STEPS = 12

# Runs every network and writes down all that it saw, as the bytes of float32.
PAGE = """
<!DOCTYPE html><meta charset="utf-8"><pre id="seen"></pre>
<script>
const networks = [{networks}], jobs = {jobs}, told = [];
jobs.forEach(({{ x, steps }}, at) => {{
  const given = new Float32Array(Uint8Array.from(atob(x), (letter) => letter.charCodeAt(0)).buffer);
  const network = networks[at]().create({{ seed: 5, sample: 7 }}), size = given.length / steps, found = [];
  for (let step = 0; step < steps; step++) {{
    network.step(given.subarray(step * size, (step + 1) * size));
    for (const layer of network.layers) found.push(...layer.spikes, ...(layer.membrane ?? []));
    for (const member of network.memberLogits()) found.push(...member);
  }}
  told.push(btoa(Array.from(new Uint8Array(Float32Array.from(found).buffer), (b) => String.fromCharCode(b)).join('')));
}});
document.getElementById('seen').textContent = told.join(' ');
</script>
"""

ORT = """
import { readFileSync } from 'node:fs';
import * as ort from 'MODULE';
ort.env.wasm.numThreads = 1;
const told = [];
for (const { path, shape, x } of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  const session = await ort.InferenceSession.create(readFileSync(path));
  const given = new Float32Array(Uint8Array.from(atob(x), (letter) => letter.charCodeAt(0)).buffer);
  const { logits } = await session.run({ events: new ort.Tensor('float32', given, shape) });
  told.push(Buffer.from(logits.data.buffer, logits.data.byteOffset, logits.data.byteLength).toString('base64'));
}
console.log(told.join(' '));
"""


def encoded(x: np.ndarray) -> str:
    return b64encode(np.ascontiguousarray(x, "<f4").tobytes()).decode()


def decoded(texts: str) -> list[np.ndarray]:
    return [np.frombuffer(b64decode(text), "<f4") for text in texts.split()]


@pytest.mark.skipif(chromium() is None, reason="no Chromium here; install it with apt-get install chromium")
def test_chromium_gives_the_bits_of_numpy(exported, tmp_path):
    cases = [exported(*case) for case in CASES]
    models = [load(case.path, "numpy") for case in cases]
    inputs = [case.input(STEPS, 1, 0.4, seed=2) for case in cases]
    jobs = [
        {"x": encoded(x), "steps": STEPS if case.recipe.spiking else 1} for case, x in zip(cases, inputs, strict=True)
    ]
    networks = ",".join(f"() => {{{script_text(model.program)} return {{ create }};}}" for model in models)
    (tmp_path / "page.html").write_text(PAGE.format(networks=networks, jobs=json.dumps(jobs)), "utf-8")
    seen = visit(tmp_path / "page.html", tmp_path)
    assert seen.console == []
    told = decoded(re.search(r'<pre id="seen">(.*?)</pre>', seen.dom, re.DOTALL)[1])
    assert len(told) == len(CASES)
    for case, model, x, job, found in zip(cases, models, inputs, jobs, told, strict=True):
        total, expected = Comparison(), model.run(x, seed=5, samples=[7], trace=True)
        traces = split(found, model.program, job["steps"])
        last = {"logits": traces.pop("logits")[-1]}
        total.add({name: trace[:, 0] for name, trace in expected.traces.items()}, traces)
        total.add({"logits": expected.member_logits[:, 0]}, last)
        total.hold(case.recipe.spiking)


@pytest.mark.skipif(
    shutil.which("node") is None or not (NODE_MODULES / "onnxruntime-web").is_dir(),
    reason="no onnxruntime-web here; CONTRIBUTING.md says how to install it",
)
def test_stock_onnxruntime_web_gives_the_bits_of_numpy(exported, tmp_path):
    """Files of one network without noise, which need no input but events."""
    cases = [
        exported(name, mode) for name, mode in (("binary-resnet", "mfa"), ("recurrent", "int8"), ("resnet", "mfa"))
    ]
    inputs = [case.input(STEPS, 1, 0.4, seed=3) for case in cases]
    jobs = [{"path": str(case.path), "shape": x.shape, "x": encoded(x)} for case, x in zip(cases, inputs, strict=True)]
    (tmp_path / "jobs.json").write_text(json.dumps(jobs), "utf-8")
    module = (NODE_MODULES / "onnxruntime-web/dist/ort.node.min.mjs").as_posix()
    (tmp_path / "run.mjs").write_text(ORT.replace("MODULE", module), "utf-8")
    command = ["node", str(tmp_path / "run.mjs"), str(tmp_path / "jobs.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    for case, x, found in zip(cases, inputs, decoded(done.stdout), strict=True):
        expected = load(case.path, "numpy").run(x).logits
        assert np.array_equal(found.reshape(expected.shape), expected)
        assert np.unique(expected).size > 1
