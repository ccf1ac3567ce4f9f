"""The pages of one snapshot: each is rendered once, different ones in parallel."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import duckdb

from sql.cage.connection import Reading, open_readable
from sql.errors import WarehouseError
from sql.readable import ReadableFile
from sql.warehouse import first_line
from tasks.pages.html import File
from tasks.pages.site.site import Site
from tasks.results.reader import Reader, view_errors

Stamp = tuple[int, int] | None
"""Modification time in ns and inode of the file that names the snapshot; None if it is missing."""
_MAX_PAGES = 500
_MAX_PARALLEL = 4
"""Each has a connection and caches what its pages share."""


class SnapshotPages:
    """The pages of the snapshot that is the newest when the first page is requested.

    The snapshot is open from the first request until after `retire`, when its last reader has ended.
    """

    def __init__(self, snapshot: Callable[[], AbstractContextManager[ReadableFile]], stamp: Stamp) -> None:
        self.stamp = stamp
        self._snapshot = snapshot
        self._lock = threading.Lock()  # of the fields below, held for assignments only
        self._opening = threading.Lock()  # the snapshot is opened once, and connections one after the other
        self._slots = threading.Semaphore(_MAX_PARALLEL)
        self._pages: dict[str, Future[File | None]] = {}
        """Rendered pages and those in progress, by address."""
        self._readers, self._is_retired, self._has_ended = 0, False, False
        self._stack = ExitStack()
        """Closes the snapshot and its connections."""
        self._file: ReadableFile | None = None
        self._sites: list[Site] = []
        """Sites that no thread uses now."""
        self._connections: list[Reading] = []

    def file(self, address: str) -> File | None:
        """Return the file at an address, rendered once; None if there is none. Raises FarmError or WarehouseError."""
        with self._lock:
            page = self._pages.get(address)
            if is_first := page is None:
                if len(self._pages) >= _MAX_PAGES:
                    self._pages.clear()
                page = self._pages[address] = Future()
        if is_first:
            self._render(address, page)
        return page.result()

    def retire(self) -> None:
        """Close the snapshot as soon as nobody reads it."""
        self._is_retired = True
        self._close_if_unused()

    def interrupt(self) -> None:
        """Interrupt pages in progress, whose requests get an error, and open no more connections."""
        self._has_ended = True
        for connection in list(self._connections):
            connection.interrupt()

    def _render(self, address: str, page: "Future[File | None]") -> None:
        """Set the result of `page`, the future of this address. Errors and missing pages are not kept."""
        try:
            with self._borrow_site() as site:
                file = site.file(address)
        except BaseException as error:
            self._forget(address, page)
            page.set_exception(error)
            return
        if file is None:
            self._forget(address, page)  # the number of addresses without a page is unlimited
        page.set_result(file)

    def _forget(self, address: str, page: "Future[File | None]") -> None:
        with self._lock:
            if self._pages.get(address) is page:
                del self._pages[address]

    @contextmanager
    def _borrow_site(self) -> Iterator[Site]:
        """Yield a site that no other thread uses. After an error it is dropped, because its cache may be incomplete."""
        with self._slots:
            with self._lock:
                self._readers += 1
                site = self._sites.pop() if self._sites else None
            try:
                site = site or self._open_site()
                with view_errors(self._file or Path()):
                    yield site
                with self._lock:
                    self._sites.append(site)
            except BaseException as error:
                if site is not None:
                    site.reader.close()
                if not isinstance(error, duckdb.Error):
                    raise
                raise WarehouseError(f"{self._file}: the page could not be rendered ({first_line(error)})") from error
            finally:
                with self._lock:
                    self._readers -= 1
                self._close_if_unused()

    def _open_site(self) -> Site:
        """Return a site with a connection of its own; the first one opens the snapshot."""
        with self._opening:
            if self._has_ended:
                raise WarehouseError("the site ends")
            self._file = self._file or self._stack.enter_context(self._snapshot())
            connection = self._stack.enter_context(open_readable(self._file))
            self._connections.append(connection)
            return Site(Reader(connection), self._file.name)

    def _close_if_unused(self) -> None:
        with self._lock:
            if self._readers or not self._is_retired:
                return
            stack, self._stack = self._stack, ExitStack()
            self._file, self._sites, self._connections = None, [], []
        stack.close()
