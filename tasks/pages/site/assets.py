"""What the pages of the site share: style and scripts."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from tasks.pages.report.html import as_json, template, vega_script


@dataclass(frozen=True)
class File:
    """What an address leads to."""

    kind: str
    content: str


def asset(name: str, names: Callable[[], Iterator[tuple[str, str]]], published: Collection[str] | None) -> File | None:
    """Return a style or script by its name; None if there is none.

    `names` yields what the search finds, each name with its address. `published` are the addresses that are, if known.
    """
    match name:
        case "page.css":
            return File("text/css", template(name).render())
        case "page.js" | "history.js":
            return File("text/javascript", template(name).render())
        case "kept.js":
            kept = None if published is None else sorted(_of_pages_that_go(published))
            return File("text/javascript", f"window.farmKept = {as_json(kept)};\n")
        case "vega.js":
            return File("text/javascript", vega_script())
        case "names.js":
            return File("text/javascript", f"window.farmNames = {as_json(list(names()))};\n")
    return None


def _of_pages_that_go(published: Collection[str]) -> Iterator[str]:
    """The addresses, of those that scripts lead to, that are not published for ever."""
    return (address for address in published if address.startswith(("nights/", "cells/", "sessions/", "comparisons/")))
