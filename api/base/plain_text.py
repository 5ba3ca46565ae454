"""What a name may contain, and how other text is shown: one line without characters that change how a line looks.

Control characters (an escape sequence moves the cursor and paints over other lines), line ends, marks that turn the
direction of reading, other invisible formats, and code points that no XML file may have. The two joiners that some
scripts need, U+200C and U+200D, are allowed.
"""

import re
from collections.abc import Iterable
from typing import Any, TextIO

from axonnx.base.errors import AxonnxError

LONGEST_NAME = 256
_ODD = (
    r"\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f\u2028-\u202e"
    r"\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e007f"
)
_NOT_PLAIN = re.compile(f"[{_ODD}]")
_NOT_PLAIN_LINES = re.compile(f"(?![\n\t])[{_ODD}]")


def check_plain(text: str) -> str:
    """Return a name as it is; raise ValueError if it holds a character that is not plain text of one line."""
    return _checked(_NOT_PLAIN, text)


def check_plain_lines(text: str) -> str:
    """Return a text as it is; raise ValueError if it holds such a character other than line ends and tabs."""
    return _checked(_NOT_PLAIN_LINES, text)


def check_names(names: Iterable[str], what: str) -> None:
    """Refuse names that no exported file can hold.

    Raises:
        AxonnxError: If a name is longer than 256 characters, or is not plain text of one line.
    """
    for name in names:
        try:
            check_plain(name)
        except ValueError as fault:
            raise AxonnxError(f"{what} {escaped(name[:80])!r}: {fault}. Rename it") from None
        if len(name) > LONGEST_NAME:
            raise AxonnxError(f"{what} {name[:80]!r}…: has {len(name)} characters; expected at most {LONGEST_NAME}")


def escaped(text: object) -> str:
    r"""Return a text of one line that shows every character which is not plain as ``\uXXXX``, as JSON does."""
    return _NOT_PLAIN.sub(_shown, str(text))


def escaped_lines(text: str) -> str:
    """Return a text that keeps its line ends and tabs, and shows all other characters that are not plain."""
    return _NOT_PLAIN_LINES.sub(_shown, text)


def _checked(odd: re.Pattern[str], text: str) -> str:
    if found := odd.search(text):
        raise ValueError(
            f"holds U+{ord(found[0]):04X} at character {found.start() + 1}; expected plain text without control "
            f"characters, line ends and marks of direction"
        )
    return text


def _shown(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


class PlainStream:
    """A text stream that shows characters which are not plain instead of sending them to a terminal.

    ``raw`` is the stream below, for output that moves the cursor on purpose.
    """

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        """Write a text; line ends and tabs stay as they are."""
        self.raw.write(escaped_lines(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def raw_stream(stream: TextIO) -> TextIO:
    """Return the stream below a ``PlainStream``, and any other as it is."""
    return stream.raw if isinstance(stream, PlainStream) else stream
