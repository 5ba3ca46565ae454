"""Every neuron operator, as the JavaScript that is made from its body, has the bits of ONNX's reference."""

import json

import numpy as np
import pytest

from axonnx.runtime.codegen.expressions import javascript_function
from axonnx.runtime.codegen.js.module_text import library, module_text
from axonnx.runtime.format.opset import OPS

from ...engines.hand_made import neuron_program
from ..hard_numbers import INVENTED, NEURONS, assert_same_bits, by_onnx, hard_numbers
from .node import needs_node, node

RUN = """
import {{ readFileSync, writeFileSync }} from 'node:fs';
export function run(file, outputs, inputs) {{
  const values = new Float32Array(new Uint8Array(readFileSync(file)).buffer), size = values.length / inputs;
  const results = Array.from({{ length: outputs }}, () => new Float32Array(size));
  {function}(...results, ...Array.from({{ length: inputs }}, (_, i) => values.subarray(i * size, (i + 1) * size)));
  writeFileSync(file, Buffer.concat(results.map((part) => new Uint8Array(part.buffer))));
}}
"""


@needs_node
@pytest.mark.parametrize("op", [*NEURONS, INVENTED], ids=lambda op: op.name)
def test_javascript_has_the_bits_of_onnx(op, tmp_path):
    feeds, file = hard_numbers(op), tmp_path / "values"
    np.concatenate(list(feeds.values())).tofile(file)
    text = "\n".join([library("kernels.js"), javascript_function(op), RUN.format(function=op.function)])
    node().ask(text, f"return module.run({json.dumps(str(file))}, {len(op.outputs)}, {len(op.inputs)}) ?? null")
    assert_same_bits(np.split(np.fromfile(file, np.float32), len(op.outputs)), by_onnx(op, feeds))


def test_a_module_has_the_operators_of_its_network_alone():
    parameters = {name: np.float32(1).reshape(()) for name in OPS["LIF"].parameters}
    text = module_text(neuron_program("LIF", 3, parameters, noisy=False, stateful=True))
    assert [op.name for op in NEURONS if f"function {op.function}(" in text] == ["LIF"]
