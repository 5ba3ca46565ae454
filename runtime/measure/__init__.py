"""What a file is worth and what it costs: figures of merit, operations, energy."""
