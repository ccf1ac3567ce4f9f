"""Addresses of the site's pages, relative to the home page: the same on the live site and in a published folder."""

import functools
import hashlib
import re
from datetime import date

_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9_-]|\.(?!\.)){0,59}")
_PAIR = ".."


@functools.lru_cache(maxsize=10_000)
def slug(name: str) -> str:
    """Return a name as part of an address, without slash and `..`; unique also where a file system ignores case."""
    if _PLAIN.fullmatch(name):
        return name
    readable = re.sub(r"[^a-z0-9._-]+|\.{2,}", "-", name.lower()).strip("-.")[:50]
    return f"{readable}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


INCIDENTS_PAGE = "incidents.html"


def night_page(night: date) -> str:
    return f"nights/{night}.html"


def sweep_page(sweep_id: str) -> str:
    return f"sweeps/{slug(sweep_id)}.html"


def model_page(model: str) -> str:
    return f"models/{slug(model)}.html"


def device_page(device: str) -> str:
    return f"devices/{slug(device)}.html"


def series_page(series_id: str, device: str) -> str:
    """Return the address of the history of a series: the page of its device, where a script reads the series."""
    return f"{device_page(device)}?series={series_id}"


def history_file(device: str, monday: date) -> str:
    """Return the address of the data of all series of a device in the week that begins on `monday`."""
    return f"histories/{slug(device)}/{monday}.js"


def change_file(series_id: str, device: str) -> str:
    """Return the address of what changed in the newest night of a series on a device."""
    return f"changes/{slug(device)}/{series_id}.js"


def cell_page(cell: str) -> str:
    return f"cells/{cell}.html"


def session_page(session_id: str) -> str:
    return f"sessions/{session_id}.html"


def trace_page(session_id: str) -> str:
    """Return the address at which the live site opens the trace of a session in Perfetto's viewer."""
    return f"traces/{session_id}"


def comparison_page(before: date, after: date) -> str:
    return f"comparisons/{before}{_PAIR}{after}.html"


def arms_page(kind: str, a: str, b: str) -> str:
    """Return the address of the comparison of two devices, models, precisions or variants; `kind` is one of these."""
    return f"comparisons/{kind}/{slug(a)}{_PAIR}{slug(b)}.html"


def cell_pair_page(a: str, b: str) -> str:
    """Return the address of the comparison of two cells, named by their ids."""
    return f"comparisons/cells/{a}{_PAIR}{b}.html"


def split_pair(name: str) -> tuple[str, str]:
    """Return A and B of `a..b`, the last part of a comparison's address; without `..` the first is empty."""
    a, _, b = name.rpartition(_PAIR)
    return a, b
