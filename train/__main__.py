"""``python -m axonnx.train …``: what ``torchrun`` starts in every process."""

import sys

from axonnx.runtime.guard import guarded
from axonnx.train.command import main

if __name__ == "__main__":
    sys.exit(guarded("axonnx train", lambda: main(sys.argv[1:])))
