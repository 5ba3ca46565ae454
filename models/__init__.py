"""The paper's mathematics in torch."""
