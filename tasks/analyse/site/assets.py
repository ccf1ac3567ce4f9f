"""What the pages of the site share: style, scripts, and the names that the search finds."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.analyse.report import addresses
from tasks.analyse.report.html import template, vega_script

if TYPE_CHECKING:
    from tasks.analyse.site.site import Site


@dataclass(frozen=True)
class File:
    """What an address leads to."""

    kind: str
    content: str


def asset(name: str, site: "Site", published: Collection[str] | None) -> File | None:
    """Return a style or script by its name; None if there is none. `published` are the addresses that are, if known."""
    match name:
        case "page.css":
            return File("text/css", template(name).render())
        case "page.js" | "history.js":
            return File("text/javascript", template(name).render())
        case "kept.js":
            kept = None if published is None else sorted(_of_pages_that_go(published))
            return File("text/javascript", f"window.farmKept = {json.dumps(kept)};\n")
        case "vega.js":
            return File("text/javascript", vega_script())
        case "names.js":
            return File("text/javascript", f"window.farmNames = {json.dumps(list(_names(site)))};\n")
    return None


def _names(site: "Site") -> Iterator[tuple[str, str]]:
    """What the search finds: each name with its address."""
    models = [*(row.model for row in site.series), *(row.model for row in site.unjudged.values())]
    yield from {model: addresses.model_page(model) for model in models}.items()
    yield from ((row.device, f"devices/{name}.html") for name, row in site.devices.items())
    yield from ((str(row.night), addresses.night_page(row.night)) for row in site.nights)
    yield from ((row.sweep_id, f"sweeps/{name}.html") for name, row in site.sweeps.items())


def _of_pages_that_go(published: Collection[str]) -> Iterator[str]:
    """The addresses, of those that scripts lead to, that are not published for ever."""
    return (address for address in published if address.startswith(("nights/", "cells/", "sessions/", "comparisons/")))
