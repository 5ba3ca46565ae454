"""Data, configuration, objective, loop and checkpoints."""
