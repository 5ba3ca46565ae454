"""Data sets: where samples come from and how they become batches."""
