"""Properties hold on a busy machine too: how long an example takes is no part of them.

Examples are chosen by the test's own text, so that the same code passes or fails every time; chance is for `make fuzz`.
"""

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile("anywhere", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("anywhere")

os.environ["TRITON_INTERPRET"] = "1"  # kernels run without a GPU; Triton reads it when it is imported

# A shell starts its background jobs with SIGINT ignored, which Python and all processes below it would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
