"""Networks of every kind as firmware of a Cortex-M4 in qemu: the logits of numpy, bit for bit."""

import numpy as np
import pytest

from axonnx.compiling import compile_to
from axonnx.runtime.model import load

from ..deploy.firmware import decisions, needs_board, run_firmware

CASES = (
    ("binary-resnet", "int8"),
    ("mlp-zero", "sampled"),
    ("recurrent-decays", "stochastic"),
    ("resnet-counts", "mfa"),
    ("resnet-bntt", "mfa"),
    ("two-branches", "stochastic"),
)


@needs_board
@pytest.mark.parametrize(("name", "mode"), CASES)
def test_firmware_gives_the_bits_of_numpy(name, mode, exported, tmp_path):
    case = exported(name, mode)
    model = load(case.path, "numpy")
    folder = compile_to(case.path, tmp_path / "board", "cortex-m").folder
    x = case.input(model.contract.input.steps or 1, 1, 0.3, seed=4)
    np.savetxt(folder / "x.csv", x.reshape(model.contract.input.steps or 1, -1), "%d", ",")
    ((label, logits),) = decisions(run_firmware(folder, "x.csv"))
    expected = model.run(x, samples=[0])
    assert np.array_equal(logits, expected.member_logits[:, 0])
    assert label == model.contract.classes[int(expected.logits[0].argmax())]
    assert np.unique(logits).size > 1
