"""The exception for users' faults, which the command line prints before it ends with exit code 2."""

from collections.abc import Mapping, Sequence


class AxonnxError(ValueError):
    """A fault in the user's input. The text states where, what was found, what was expected, and what to do.

    Args:
        text: The message.
        options: Names of the arguments that would correct the fault; the command line shows them as its options.
        settings: Missing settings of a run, with values to begin with.

    Examples:
        >>> try:
        ...     axonnx.load("digits.onnx", engine="quantum")
        ... except axonnx.AxonnxError as fault:
        ...     print(fault)
        unknown engine 'quantum'; expected one of ...
    """

    def __init__(
        self, text: str = "", *, options: Sequence[str] = (), settings: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(text)
        self.options = tuple(options)
        self.settings = dict(settings or {})
