"""All output to the terminal: control characters in texts of files, devices and servers are replaced.

Colours are added after that, to words of the farm's own vocabulary, and only on a terminal that shows them.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from devices.untrusted import sanitize, sanitize_line
from tasks.results.text import Text, Tone, Toned, split_text, word_tone, wrap_text

if TYPE_CHECKING:
    from rich.console import Console  # slow to import, and few commands show progress

_COLORS: dict[Tone, str] = {"bad": "31", "good": "32", "flag": "33", "quiet": "2"}
_RESET = "\x1b[0m"
_FIRST_WORDS = re.compile(r"[a-z ]+(?=:)")


def show(*lines: object, err: bool = False) -> None:
    """Print each of `lines` as one line to standard output, or with `err` to standard error.

    A terminal shows it in several, broken at spaces, and in colour a result at its start: `regression: ...`.
    """
    width = terminal_width(err=err)
    for line in lines:
        text = sanitize_line(line)
        first, *rest = (wrap_text(text, width) if width else []) or [text]
        if has_color(err=err) and (match := _FIRST_WORDS.match(first)):
            first = f"{_colored(match[0], word_tone(match[0]))}{first[match.end() :]}"
        typer.echo("\n".join([first, *rest]), err=err)


def show_pieces(pieces: Iterable[str], *, err: bool = False) -> None:
    """Print text of several lines that comes in pieces, such as rows of a query."""
    for piece in pieces:
        typer.echo(sanitize(piece), nl=False, err=err)


def show_table(lines: Iterable[Text]) -> None:
    """Print the lines of a table that fits already, with the colours of its cells."""
    is_colored = has_color()
    for line in lines:
        parts = ((sanitize_line(part), part.tone if isinstance(part, Toned) else "") for part in split_text(line))
        typer.echo("".join(_colored(text, tone) if is_colored else text for text, tone in parts))


def show_above(console: "Console", line: str, *, is_failure: bool = False) -> None:
    """Print a line above the progress bars of `console`."""
    text = sanitize_line(line)
    lines = wrap_text(text, console.width) if console.is_terminal else [text]
    style = "red" if is_failure else None
    console.print("\n".join(lines), style=style, highlight=False, markup=False, soft_wrap=True)


def terminal_width(*, wide: bool = False, err: bool = False) -> int | None:
    """Return the width in characters; None, which cuts and breaks nothing, for a pipe or a file, or with `wide`."""
    if wide or not (sys.stderr if err else sys.stdout).isatty():
        return None
    return shutil.get_terminal_size().columns


def has_color(*, err: bool = False) -> bool:
    """Return whether output is coloured: not in a pipe or a file, with NO_COLOR, or on a terminal without colours."""
    is_wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return is_wanted and (sys.stderr if err else sys.stdout).isatty()


def _colored(text: str, tone: Tone) -> str:
    return f"\x1b[{_COLORS[tone]}m{text}{_RESET}" if tone in _COLORS and text.strip() else text
