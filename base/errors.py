"""Faults of the user's making, as one exception that a command line can print and end with exit code 2."""

from collections.abc import Mapping, Sequence


class AxonnxError(ValueError):
    """A fault in what the user gave: the text says where, what was found, what was expected, what to do.

    ``options`` are the arguments that would mend it, by their names; the command line shows them as its own.
    ``settings`` are settings of a run that are missing, with values to begin with.

    Examples:
        >>> try:
        ...     axonnx.load("digits.onnx", engine="quantum")
        ... except axonnx.AxonnxError as fault:
        ...     print(fault)
        engine 'quantum'; expected one of ...
    """

    def __init__(
        self, text: str = "", *, options: Sequence[str] = (), settings: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(text)
        self.options = tuple(options)
        self.settings = dict(settings or {})
