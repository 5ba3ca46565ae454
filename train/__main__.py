"""``python -m axonnx.train …``: what ``torchrun`` starts in every process."""

import sys

from axonnx.train.command import main

if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ValueError as fault:  # user faults, as in the axonnx command
        print(f"axonnx train: {fault}", file=sys.stderr)
        sys.exit(2)
