"""``python -m axonnx.train …``: what ``torchrun`` starts in every process."""

import sys

from axonnx.runtime.errors import AxonnxError
from axonnx.train.command import main

if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except AxonnxError as fault:
        sys.exit(f"axonnx train: {fault}")
