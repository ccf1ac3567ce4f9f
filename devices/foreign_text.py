"""Text that others wrote (logs, names, a server's greeting), as it may be shown: it cannot act where it appears.

Letters of every script, emoji and combining marks stay as they are.
"""

import re
from collections.abc import Mapping
from typing import Any

# Control characters except tab and newline (escape sequences begin with one), marks that change the direction of
# the text after them, other line ends, and surrogates, which stand for bytes of a file's name that are not UTF-8.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_LINE_BREAKS = re.compile("[\t-\r\x1c-\x1f\x85\u2028\u2029]")


def plain(text: object) -> str:
    """Return text of several lines in which every character that could act is a replacement mark (U+FFFD)."""
    return _ACTING.sub("\ufffd", str(text))


def plain_line(text: object) -> str:
    """Return the same on one line: tabs and line ends become blanks."""
    return plain(_LINE_BREAKS.sub(" ", str(text)))


def plain_data(value: Any) -> Any:
    """Return lists and mappings, as JSON has them, in which every text is plain."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {plain_data(name): plain_data(each) for name, each in value.items()}
    return [plain_data(each) for each in value] if isinstance(value, (list, tuple)) else value


def one_line(text: str, most_letters: int = 300) -> str:
    """Return text from a file or a device as a part of a sentence: on one line, cut if it is long."""
    line = plain(" ".join(text[: 4 * most_letters].split()))
    return line if len(line) <= most_letters else f"{line[:most_letters]}..."
