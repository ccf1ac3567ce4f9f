"""The farm's pages, live from the newest snapshot: `etfarm site`."""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from starlette.middleware.base import RequestResponseEndpoint

from devices.errors import FarmError, InputError
from devices.untrusted import excerpt, sanitize_line
from flows.traces import VIEWER_POLICY
from flows.warehouse.readable import readable_warehouse
from flows.warehouse.site_traces import VIEWER, add_traces
from flows.warehouse.snapshot_pages import SnapshotPages, Stamp
from sql.errors import WarehouseError
from sql.readable import ReadableFile
from tasks.pages.html import SITE_POLICY, as_html
from tasks.pages.page import Page
from tasks.results.text import Link
from tasks.store.bundle_store import BundleStore
from tasks.store.workspace import Workspace

_HOME = "index.html"
_PAUSE_S = 0.1
_HEADERS = [
    ("X-Frame-Options", "DENY"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
]
_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_NAME = re.compile(r"[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\]")
_MAX_CHARS = 512
"""Of an address: a page has at most 160."""


class LiveSite:
    """The pages of the newest snapshot; a change of the file `pointer` means that there is a new one.

    The home page of a large farm takes seconds to render. The previous snapshot is served until a thread has rendered
    the new home page. A page that only the new snapshot has is served from it at once.
    """

    def __init__(self, snapshot: Callable[[], AbstractContextManager[ReadableFile]], pointer: Path) -> None:
        self._snapshot = snapshot
        self._pointer = pointer
        self._lock = threading.Lock()
        self._served = self._newest = SnapshotPages(snapshot, self._stamp())
        self._open = [self._served]
        self._preparing = ThreadPoolExecutor(1)
        self._prepared = self._preparing.submit(self._prepare, self._newest)

    def answer(self, address: str) -> Response:
        """Return the file at an address, or a page with the reason and status 404 (no such page) or 503 (an error)."""
        address = address or _HOME
        served, newest = self._snapshots()
        try:
            file = served.file(address)
            if file is None and newest is not served:
                file = newest.file(address)
        except (FarmError, WarehouseError) as error:
            return HTMLResponse(_render_error(address, str(error)), 503)
        if file is None:
            return HTMLResponse(_render_error(address, f"There is no page {address}."), 404)
        return Response(file.content, media_type=file.kind, headers={"Cache-Control": "no-cache"})

    def interrupt(self) -> None:
        """Interrupt the queries of pages in progress."""
        for each in list(self._open):
            each.interrupt()

    def close(self) -> None:
        """End the thread that prepares snapshots: it must not be inside DuckDB when Python ends."""
        self._preparing.shutdown(wait=False)
        self.interrupt()
        while not wait([self._prepared], _PAUSE_S).done:  # the last of its jobs
            self.interrupt()
        for each in self._open:
            each.retire()

    def _stamp(self) -> Stamp:
        with suppress(OSError):
            status = self._pointer.stat()
            return status.st_mtime_ns, status.st_ino
        return None

    def _snapshots(self) -> tuple[SnapshotPages, SnapshotPages]:
        """Return the served pages and those of the newest snapshot; begin to prepare a new snapshot."""
        stamp = self._stamp()
        with self._lock:
            if stamp != self._newest.stamp:
                self._newest = SnapshotPages(self._snapshot, stamp)
                self._open.append(self._newest)
                self._prepared = self._preparing.submit(self._prepare, self._newest)
            return self._served, self._newest

    def _prepare(self, pages: SnapshotPages) -> None:
        """Render a snapshot's home page, then serve the snapshot; if that fails, requests get the error."""
        try:
            with suppress(FarmError, WarehouseError):
                pages.file(_HOME)
        finally:
            previous, self._served = self._served, pages
            if previous is not pages:
                self._open.remove(previous)
                previous.retire()


def _render_error(address: str, reason: str) -> str:
    home = (sanitize_line(reason), " Go to ", Link("the home page", "index.html"), ".")
    return as_html(Page("Nothing here", answer=home, tone="flag", footer="etfarm", address=address))


def open_site(workspace: Workspace) -> LiveSite:
    """Return the pages of the newest snapshot, or of a warehouse elsewhere."""
    pointer = workspace.snapshots / "current" if workspace.has_snapshots else workspace.warehouse
    return LiveSite(partial(readable_warehouse, workspace), pointer)


def host_names(words: Iterable[str]) -> list[str]:
    """Return host names in lower case, without a final dot; raises InputError for a word that is not a host name."""
    names = [word.lower().removesuffix(".") for word in words]
    for name in names:
        if not _NAME.fullmatch(name):
            raise InputError(f"--host-name {name}: not a host name; pass one without scheme and port: farm.example")
    return names


def build_app(
    site: LiveSite, names: Iterable[str] = (), open_store: Callable[[], BundleStore] | None = None
) -> FastAPI:
    """Return an application that answers GET requests for the host names `names` and those of this machine."""
    app = FastAPI(title="etfarm", docs_url=None, redoc_url=None, openapi_url=None)
    allowed = {*_LOCAL_NAMES, *names}

    @app.middleware("http")
    async def add_policy(request: Request, answer: RequestResponseEndpoint) -> Response:
        """Set what a browser may load: only the viewer of traces may run WebAssembly."""
        response = await check_request(request, answer)
        policy = VIEWER_POLICY if request.scope["path"].startswith(VIEWER) else SITE_POLICY
        response.headers["Content-Security-Policy"] = f"{policy}; frame-ancestors 'none'"
        return response

    async def check_request(request: Request, answer: RequestResponseEndpoint) -> Response:
        """Answer 414 for a long address, 421 for a foreign host name: DNS rebinding could otherwise read answers."""
        if len(request.scope["path"]) > _MAX_CHARS:
            return PlainTextResponse(f"An address here has at most {_MAX_CHARS} characters.\n", 414)
        hosts = [_host_name(host) for host in request.headers.getlist("host")]
        if len(hosts) == 1 and hosts[0] in allowed:
            return await answer(request)
        name = excerpt(", ".join(hosts), 100) or "(none)"
        remedy = "to allow it, start `etfarm site` with --host-name and this name"
        return PlainTextResponse(f"These pages are not served under the host name {name}; {remedy}.\n", 421)

    if open_store is not None:
        add_traces(app, open_store)

    @app.get("/{address:path}")
    def page(address: str) -> Response:
        return site.answer(address)

    return app


def _host_name(host: str) -> str:
    """Return the name in a `Host` header in lower case, without its port and final dot."""
    name, colon, port = host.rpartition(":")
    return (name if colon and (port.isdecimal() or not port) else host).lower().removesuffix(".")


class SiteServer(uvicorn.Server):
    """Serves the pages until Ctrl-C or SIGTERM, which also interrupt pages in progress; every answer has _HEADERS."""

    def __init__(
        self, site: LiveSite, names: Iterable[str] = (), open_store: Callable[[], BundleStore] | None = None
    ) -> None:
        app = build_app(site, names, open_store)
        super().__init__(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none", headers=_HEADERS))
        self._site = site

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Interrupt pages in progress, then end the server."""
        self._site.interrupt()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Interrupt repeatedly until all requests are answered: one interrupt ends one query of a page."""
        ending = asyncio.create_task(self._interrupt())
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()

    async def _interrupt(self) -> None:
        while True:
            self._site.interrupt()
            await asyncio.sleep(_PAUSE_S)


def serve(listener: socket.socket, workspace: Workspace, names: Iterable[str]) -> None:
    """Serve the pages on a socket until they are ended; raises KeyboardInterrupt after Ctrl-C."""
    site = open_site(workspace)
    try:
        SiteServer(site, names, lambda: workspace.store).run(sockets=[listener])
    finally:
        site.close()
