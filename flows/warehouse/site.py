"""The farm's pages, live from the newest snapshot: `etfarm site`."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from devices.errors import FarmError
from devices.foreign_text import plain_line
from flows.warehouse.readable import is_of_var, readable_warehouse
from sql.cage.connection import open_readable
from sql.errors import WarehouseError
from sql.readable import ReadableFile
from tasks.analyse.report.html import as_html
from tasks.analyse.report.page import Link, Page
from tasks.analyse.site.assets import File
from tasks.analyse.site.site import Site
from tasks.store.var import Var

_MOST_KEPT = 500
_HOME = "index.html"
_Stamp = tuple[int, int] | None


class _Opened:
    """The pages of one snapshot, each made once; `kept` holds what is closed with them."""

    def __init__(self, snapshot: Callable[[], AbstractContextManager[ReadableFile]], stamp: _Stamp) -> None:
        self.stamp = stamp
        self._made: dict[str, File | None] = {}
        with ExitStack() as stack:
            file = stack.enter_context(snapshot())
            self._site = Site(stack.enter_context(open_readable(file)), file.name)
            self.close = stack.pop_all().close

    def file(self, address: str) -> File | None:
        """Return what is at an address; None if nothing is."""
        if address not in self._made:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()
            self._made[address] = self._site.file(address)
        return self._made[address]


class LiveSite:
    """The pages of the newest snapshot, as `stated`, a file, names it.

    A large farm's home page takes seconds to make. So the pages of the former snapshot are shown until that of a new
    one is made, in a thread beside the answers.
    """

    def __init__(self, snapshot: Callable[[], AbstractContextManager[ReadableFile]], stated: Path) -> None:
        self._snapshot = snapshot
        self._stated = stated
        self._opened: _Opened | None = None
        self._preparing: threading.Thread | None = None
        self._lock = threading.Lock()

    def answer(self, address: str) -> Response:
        """Return what is at an address; a page that says why there is nothing, with status 404 or 503."""
        with self._lock:
            try:
                found = self._newest().file(address or _HOME)
            except (FarmError, WarehouseError) as error:
                return HTMLResponse(_sorry(address, str(error)), 503)
        if found is None:
            return HTMLResponse(_sorry(address, f"There is no page {address}."), 404)
        cached = "max-age=3600" if address.startswith("assets/vega") else "no-cache"
        return Response(found.content, media_type=found.kind, headers={"Cache-Control": cached})

    def _newest(self) -> _Opened:
        status = self._stated.stat() if self._stated.exists() else None
        stamp = (status.st_mtime_ns, status.st_ino) if status else None
        if self._opened is None:
            self._opened = _Opened(self._snapshot, stamp)
        elif stamp != self._opened.stamp and self._preparing is None:
            self._preparing = threading.Thread(target=self._prepare, args=(stamp,), daemon=True)
            self._preparing.start()
        return self._opened

    def _prepare(self, stamp: _Stamp) -> None:
        """Open the snapshot and make its home page, then show it; an error is the answer to the next request."""
        opened = None
        try:
            with suppress(FarmError, WarehouseError):
                opened = _Opened(self._snapshot, stamp)
                opened.file(_HOME)
        finally:
            with self._lock:
                if self._opened:
                    self._opened.close()
                self._opened, self._preparing = opened, None


def _sorry(address: str, reason: str) -> str:
    """Return a page with one sentence; its links lead to the pages that every farm has."""
    home = (plain_line(reason), " Go to ", Link("this morning", "index.html"), ".")
    return as_html(Page("Nothing here", "", (), (), (), "etfarm", address or "index.html", answer=home, tone="flag"))


def app_of(var: Path, warehouse: Path | None) -> FastAPI:
    """Return the application, which answers GET and writes nothing."""
    app = FastAPI(title="etfarm", docs_url=None, redoc_url=None, openapi_url=None)
    stated = warehouse if warehouse and not is_of_var(var, warehouse) else Var(var).snapshots / "current"
    site = LiveSite(partial(readable_warehouse, var, warehouse), stated)
    site.answer(_HOME)  # made before anybody asks

    @app.get("/{address:path}")
    def page(address: str) -> Response:
        return site.answer(address)

    return app
