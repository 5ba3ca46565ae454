"""From a captured step to an ONNX graph."""
