"""From a traced step to an ONNX graph."""
