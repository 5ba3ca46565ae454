"""Where figures of merit used to live; their home is ``axonnx.runtime.metrics``."""

from axonnx.runtime.metrics import Metrics, expected_calibration_error, measure, wilson_interval

__all__ = ["Metrics", "expected_calibration_error", "measure", "wilson_interval"]
