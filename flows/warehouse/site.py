"""The farm's pages, live from the newest snapshot: `etfarm site`."""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from devices.errors import FarmError
from devices.foreign_text import plain_line
from flows.warehouse.readable import is_of_var, readable_warehouse
from flows.warehouse.site_requests import HEADERS, StatedNames
from flows.warehouse.snapshot_pages import SnapshotPages, Stamp
from sql.errors import WarehouseError
from sql.readable import ReadableFile
from tasks.pages.html import as_html
from tasks.pages.page import Page
from tasks.results.text import Link
from tasks.store.var import Var

_HOME = "index.html"
_PAUSE_S = 0.1


class LiveSite:
    """The pages of the newest snapshot, as `stated`, a file, names it.

    A large farm's home page takes seconds to make. So the pages of the former snapshot are shown until that of a new
    one is made, in a thread beside the answers; what only the new one has is answered from it at once.
    """

    def __init__(self, snapshot: Callable[[], AbstractContextManager[ReadableFile]], stated: Path) -> None:
        self._snapshot = snapshot
        self._stated = stated
        self._lock = threading.Lock()
        self._shown = self._newest = SnapshotPages(snapshot, self._stamp())
        self._open = [self._shown]
        self._preparing = ThreadPoolExecutor(1)
        self._prepared = self._preparing.submit(self._show, self._newest)

    def answer(self, address: str) -> Response:
        """Return what is at an address; a page that says why there is nothing, with status 404 or 503."""
        address = address or _HOME
        shown, newest = self._snapshots()
        try:
            found = shown.file(address)
            if found is None and newest is not shown:
                found = newest.file(address)
        except (FarmError, WarehouseError) as error:
            return HTMLResponse(_sorry(address, str(error)), 503)
        if found is None:
            return HTMLResponse(_sorry(address, f"There is no page {address}."), 404)
        cached = "max-age=3600" if address.startswith("assets/vega") else "no-cache"
        return Response(found.content, media_type=found.kind, headers={"Cache-Control": cached})

    def interrupt(self) -> None:
        """End what is being made."""
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
            status = self._stated.stat()
            return status.st_mtime_ns, status.st_ino
        return None

    def _snapshots(self) -> tuple[SnapshotPages, SnapshotPages]:
        """The pages that are shown, and those of the newest snapshot, which are prepared if they are others."""
        stamp = self._stamp()
        with self._lock:
            if stamp != self._newest.stamp:
                self._newest = SnapshotPages(self._snapshot, stamp)
                self._open.append(self._newest)
                self._prepared = self._preparing.submit(self._show, self._newest)
            return self._shown, self._newest

    def _show(self, pages: SnapshotPages) -> None:
        """Make the home page of a snapshot, then show it; an error is the answer to the next request."""
        try:
            with suppress(FarmError, WarehouseError):
                pages.file(_HOME)
        finally:
            former, self._shown = self._shown, pages
            if former is not pages:
                self._open.remove(former)
                former.retire()


def _sorry(address: str, reason: str) -> str:
    """Return a page with one sentence; its links lead to the pages that every farm has."""
    home = (plain_line(reason), " Go to ", Link("this morning", "index.html"), ".")
    return as_html(Page("Nothing here", answer=home, tone="flag", footer="etfarm", address=address))


def site_of(var: Path, warehouse: Path | None) -> LiveSite:
    """Return the pages of the var folder's newest snapshot, or of another warehouse."""
    stated = warehouse if warehouse and not is_of_var(var, warehouse) else Var(var).snapshots / "current"
    return LiveSite(partial(readable_warehouse, var, warehouse), stated)


def app_of(site: LiveSite, names: Sequence[str] = ()) -> StatedNames:
    """Return the application, which answers GET and writes nothing, under the host names `names` and this machine's."""
    app = FastAPI(title="etfarm", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/{address:path}")
    def page(address: str) -> Response:
        return site.answer(address)

    return StatedNames(app, names)


class SiteServer(uvicorn.Server):
    """Serves the pages until Ctrl-C or SIGTERM, which end also what is being made; every answer has the headers."""

    def __init__(self, site: LiveSite, names: Sequence[str] = ()) -> None:
        app = app_of(site, names)
        super().__init__(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none", headers=HEADERS))
        self._site = site

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End what is being made, then the server."""
        self._site.interrupt()
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what is being made until all requests are answered: an interrupt ends one query, and a page has many."""
        ending = asyncio.create_task(self._interrupt())
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()

    async def _interrupt(self) -> None:
        while True:
            self._site.interrupt()
            await asyncio.sleep(_PAUSE_S)


def serve(listener: socket.socket, var: Path, warehouse: Path | None, names: Sequence[str]) -> None:
    """Serve the pages on a socket; raises KeyboardInterrupt when Ctrl-C has ended them in order."""
    site = site_of(var, warehouse)
    try:
        SiteServer(site, names).run(sockets=[listener])
    finally:
        site.close()
