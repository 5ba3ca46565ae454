"""``python -m axonnx.cli``: the same as the ``axonnx`` command."""

import sys

from axonnx.cli.command import main

sys.exit(main())
