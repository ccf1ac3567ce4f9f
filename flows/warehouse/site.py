"""The farm's pages, live from the newest snapshot: `etfarm site`."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from devices.errors import FarmError
from devices.foreign_text import plain_line
from flows.warehouse.publish import is_of_var, readable_warehouse
from sql.errors import WarehouseError
from sql.warehouse import open_read_only
from tasks.analyse.report.html import as_html
from tasks.analyse.report.page import Link, Page
from tasks.analyse.site.site import File, Site
from tasks.store.var import Var

_MOST_KEPT = 500


class LiveSite:
    """The pages of the newest snapshot; the one that is open is kept until `stated`, a file, changes."""

    def __init__(self, opened: Callable[[], AbstractContextManager[Path]], stated: Path) -> None:
        self._opened = opened
        self._stated = stated
        self._stamp: tuple[int, int] | None = None
        self._kept = ExitStack()
        self._site: Site | None = None
        self._made: dict[str, File | None] = {}
        self._lock = threading.Lock()

    def answer(self, address: str) -> Response:
        """Return what is at an address; a page that says why there is nothing, with status 404 or 503."""
        with self._lock:
            try:
                found = self._found(address or "index.html")
            except (FarmError, WarehouseError) as error:
                return HTMLResponse(_sorry(address, str(error)), 503)
        if found is None:
            return HTMLResponse(_sorry(address, f"There is no page {address}."), 404)
        cached = "max-age=3600" if address.startswith("assets/vega") else "no-cache"
        return Response(found.content, media_type=found.kind, headers={"Cache-Control": cached})

    def _found(self, address: str) -> File | None:
        """Return a file of the newest snapshot, which does not change: each is made once."""
        site = self._newest()
        if address not in self._made:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()
            self._made[address] = site.file(address)
        return self._made[address]

    def _newest(self) -> Site:
        status = self._stated.stat() if self._stated.exists() else None
        stamp = (status.st_mtime_ns, status.st_ino) if status else None
        if self._site is None or stamp != self._stamp:
            with ExitStack() as stack:
                file = stack.enter_context(self._opened())
                site = Site(stack.enter_context(open_read_only(file)), file.name)
                self._kept.close()
                self._made.clear()
                self._site, self._stamp, self._kept = site, stamp, stack.pop_all()
        return self._site


def _sorry(address: str, reason: str) -> str:
    """Return a page with one sentence; its links lead to the pages that every farm has."""
    home = (plain_line(reason), " Go to ", Link("this morning", "index.html"), ".")
    return as_html(Page("Nothing here", "", (), (), (), "etfarm", address or "index.html", answer=home, tone="flag"))


def app_of(var: Path, warehouse: Path | None) -> FastAPI:
    """Return the application, which answers GET and writes nothing."""
    app = FastAPI(title="etfarm", docs_url=None, redoc_url=None, openapi_url=None)
    stated = warehouse if warehouse and not is_of_var(var, warehouse) else Var(var).snapshots / "current"
    site = LiveSite(partial(readable_warehouse, var, warehouse), stated)

    @app.get("/{address:path}")
    def page(address: str) -> Response:
        return site.answer(address)

    return app
