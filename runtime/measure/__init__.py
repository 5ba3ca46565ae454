"""Measure an exported file: accuracy, calibration, operations and energy."""
