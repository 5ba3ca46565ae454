"""Parts that every other package may use: the error for users' faults, and files that are written atomically."""
