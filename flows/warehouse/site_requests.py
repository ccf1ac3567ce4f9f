"""Which requests the live pages answer, and what every answer forbids a browser.

A page of a stranger can make a browser send requests to this machine, also under a name of its own that leads here
(DNS rebinding): then it could read the answers. So only stated names are answered.
"""

import re
from collections.abc import Iterable

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from devices.errors import InputError
from devices.foreign_text import one_line
from tasks.pages.html import SITE_POLICY

HEADERS = [
    ("Content-Security-Policy", f"{SITE_POLICY}; frame-ancestors 'none'"),
    ("X-Frame-Options", "DENY"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
]
_OF_THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]")
_NAME = re.compile(r"[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\]")
_MAX_CHARS = 512
"""Of an address: a page has at most 160."""


class StatedNames:
    """An application that answers requests for some host names alone, with addresses of limited length."""

    def __init__(self, app: ASGIApp, names: Iterable[str]) -> None:
        self._app = app
        self._names = {*_OF_THIS_MACHINE, *names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it in one sentence."""
        refused = self._refused(scope) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)

    def _refused(self, scope: Scope) -> PlainTextResponse | None:
        if len(scope["path"]) > _MAX_CHARS:
            return PlainTextResponse(f"An address here has at most {_MAX_CHARS} characters.\n", 414)
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) == 1 and _name_in(hosts[0]) in self._names:
            return None
        name = one_line(", ".join(map(_name_in, hosts)), 100) or "(none)"
        way_on = "to allow it, start `etfarm site` with --host-name and this name"
        return PlainTextResponse(f"These pages are not served under the host name {name}; {way_on}.\n", 421)


def host_names(words: Iterable[str]) -> list[str]:
    """Return host names as requests are compared with them; raises InputError for a word that is not one."""
    names = [word.lower().removesuffix(".") for word in words]
    for name in names:
        if not _NAME.fullmatch(name):
            raise InputError(f"--host-name {name}: not a host name; pass one without scheme and port: farm.example")
    return names


def _name_in(host: str) -> str:
    """Return the name in a `Host`, without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and (port.isdecimal() or not port) else host).lower().removesuffix(".")
