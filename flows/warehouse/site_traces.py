"""The trace of a session on the live site: Perfetto's viewer opens it, from this server alone."""

import re
from collections.abc import Callable

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

from devices.errors import FarmError, InputError
from flows.traces import INSTALL_VIEWER, build_trace, find_viewer
from tasks.pages.html import as_html
from tasks.pages.page import Page
from tasks.results.addresses import session_page, trace_page
from tasks.results.text import Code, Link, Text, joined, with_code
from tasks.store.bundle_store import BundleStore

VIEWER = "/perfetto/"
_SESSION_ID = re.compile(r"[0-9a-f]{8,64}")


def add_traces(app: FastAPI, open_store: Callable[[], BundleStore]) -> None:
    """Add the addresses of traces and of the viewer's pages to an application; `open_store` returns the bundles."""
    if (viewer := find_viewer()) is not None:
        app.mount(VIEWER, StaticFiles(directory=viewer, html=True))

    @app.get("/traces/{session}.json")
    def trace(session: str) -> Response:
        try:
            return Response(_read_trace(session, open_store()), media_type="application/json")
        except FarmError as error:
            return _render_page(session, with_code(str(error)), 404)

    @app.get("/traces/{session}")
    def view(session: str) -> Response:
        try:
            _find_bundle(session, open_store())
        except FarmError as error:
            return _render_page(session, with_code(str(error)), 404)
        if viewer is None:
            command = Code(f"etfarm trace {session} -o trace.json")
            reason = joined(with_code(f"Perfetto: {INSTALL_VIEWER}. "), (command,), " writes the trace.")
            return _render_page(session, reason, 503)
        # Only a browser knows the complete address, with the prefix of a proxy: a script of the page opens it.
        return _render_page(session, ("Opens in ", Link("Perfetto", VIEWER[1:]), "."), 200)


def _read_trace(session: str, store: BundleStore) -> str:
    return build_trace(_find_bundle(session, store), None, store)[0]


def _find_bundle(session: str, store: BundleStore) -> str:
    """Return the path of the bundle of a session; raises InputError, for a path instead of an id as well."""
    bundle = store.find(session) if _SESSION_ID.fullmatch(session) else None
    if bundle is None:
        raise InputError(f"{session}: no bundle of this session in {store.location}; it may have been pruned")
    return str(bundle)


def _render_page(session: str, answer: Text, status: int) -> HTMLResponse:
    back = (" Back to ", Link("the session", session_page(session)), ".")
    page = Page("Trace", answer=joined(answer, back), footer="etfarm", address=trace_page(session))
    return HTMLResponse(as_html(page), status)
