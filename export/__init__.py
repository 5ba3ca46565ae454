"""Collapse, the sum-exact grid, the ONNX writer and verification."""
