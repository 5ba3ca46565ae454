"""Faults of the user's making, as one exception that a command line can print and end with exit code 2."""


class AxonnxError(ValueError):
    """A fault in what the user gave: the text says where, what was found, what was expected, what to do."""
