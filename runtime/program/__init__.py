"""Compile ONNX to a program: a flat list of typed instructions over named buffers."""
