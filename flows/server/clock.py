"""The clock of this machine, compared with that of the Prefect server, which the farm and all its labs ask."""

import os
import time
from email.utils import parsedate_to_datetime

import httpx

from flows.server.watch import client_without_retries

_APART_S = 120.0


def ahead_of_server_s() -> float | None:
    """Return how far this machine's clock is ahead of the server's, to a second; None if no server answers."""
    if "PREFECT_API_URL" not in os.environ:
        return None  # the server of a single sweep is on this machine
    try:
        with client_without_retries() as client:
            asked = time.time()
            date = client.request("GET", "/admin/version").headers["date"]
            return (asked + time.time()) / 2 - parsedate_to_datetime(date).timestamp()  # half way: it may be slow
    except (httpx.HTTPError, OSError):  # or the file of the CA cannot be read
        return None


def clock_warning(ahead_s: float | None) -> str | None:
    """Return that a clock that is so far `ahead_of_server_s` has to be set; None if it has not, or is unknown."""
    if ahead_s is None or abs(ahead_s) <= _APART_S:
        return None
    apart = f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'}"
    return f"this machine's clock is {apart} the Prefect server's; set the one that is wrong, for example with NTP"
