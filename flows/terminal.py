"""All output to the terminal: control characters in texts of files, devices and servers are replaced."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from devices.untrusted import sanitize, sanitize_line

if TYPE_CHECKING:
    from rich.console import Console  # slow to import, and few commands show progress


def show(*lines: object, err: bool = False) -> None:
    """Print each of `lines` as one line to standard output, or with `err` to standard error."""
    for line in lines:
        typer.echo(sanitize_line(line), err=err)


def show_pieces(pieces: Iterable[str], *, err: bool = False) -> None:
    """Print text of several lines that comes in pieces, such as rows of a query."""
    for piece in pieces:
        typer.echo(sanitize(piece), nl=False, err=err)


def show_above(console: "Console", line: str) -> None:
    """Print a line above the progress bars of `console`."""
    console.print(sanitize_line(line), highlight=False, markup=False, soft_wrap=True)
