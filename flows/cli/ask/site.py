"""`etfarm site`: the farm's pages, live or published."""

from functools import partial
from pathlib import Path

import uvicorn

from devices.errors import InputError
from flows.server.shared import require_free
from flows.terminal import show
from flows.warehouse.publish import readable_warehouse
from flows.warehouse.site import app_of


def serve(host: str, port: int, var: Path, warehouse: Path | None) -> None:
    """Serve the pages until Ctrl-C; raises InputError if the address is in use."""
    require_free(host, port)
    if host not in ("127.0.0.1", "localhost", "::1"):
        raise InputError(f"--host {host}: the pages have no password; serve them on 127.0.0.1 behind a proxy that has one")
    show(f"etfarm: pages of {var} at http://{host}:{port}/; Ctrl-C ends it", err=True)
    uvicorn.run(app_of(partial(readable_warehouse, var, warehouse)), host=host, port=port, log_level="warning")
