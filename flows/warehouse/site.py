"""The farm's pages, live from the newest snapshot: `etfarm site`."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse

from devices.errors import FarmError
from devices.foreign_text import plain_line
from sql.errors import WarehouseError
from sql.warehouse import open_read_only
from tasks.analyse.report.html import as_html
from tasks.analyse.report.page import Link, Page
from tasks.analyse.site.site import Site

Opened = Callable[[], AbstractContextManager[Path]]
"""Yields the file of the newest snapshot, as `readable_warehouse` does."""


class LiveSite:
    """The pages of the newest snapshot; the one that is open is kept until there is a newer one."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._kept = ExitStack()
        self._file: Path | None = None
        self._site: Site | None = None
        self._lock = threading.Lock()

    def answer(self, address: str) -> Response:
        """Return what is at an address; a page that says why there is nothing, with status 404 or 503."""
        with self._lock:
            try:
                found = self._newest().file(address or "index.html")
            except (FarmError, WarehouseError) as error:
                return HTMLResponse(_sorry(address, str(error)), 503)
        if found is None:
            return HTMLResponse(_sorry(address, f"There is no page {address}."), 404)
        cached = "max-age=3600" if address.startswith("assets/vega") else "no-cache"
        return Response(found.content, media_type=found.kind, headers={"Cache-Control": cached})

    def _newest(self) -> Site:
        with ExitStack() as stack:
            file = stack.enter_context(self._opened())
            if self._site is None or file != self._file:
                connection = stack.enter_context(open_read_only(file))
                self._kept.close()
                self._site, self._file, self._kept = Site(connection, file.name), file, stack.pop_all()
            return self._site


def _sorry(address: str, reason: str) -> str:
    """Return a page with one sentence; its links lead to the pages that every farm has."""
    home = (plain_line(reason), " Go to ", Link("this morning", "index.html"), ".")
    return as_html(Page("Nothing here", "", (), (), (), "etfarm", address or "index.html", answer=home, tone="flag"))


def app_of(opened: Opened) -> FastAPI:
    """Return the application: it answers GET and writes nothing."""
    app = FastAPI(title="etfarm", docs_url=None, redoc_url=None, openapi_url=None)
    site = LiveSite(opened)

    @app.get("/{address:path}")
    def page(address: str) -> Response:
        return site.answer(address)

    return app
