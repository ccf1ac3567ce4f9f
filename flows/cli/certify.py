"""`etfarm devices certify`: print a line for each check, and write the page."""

import contextlib
import signal
import sys
from datetime import date
from pathlib import Path
from types import FrameType
from typing import NoReturn

import typer

from devices.errors import InputError
from devices.inventory import check_reached, load_inventory
from flows.cli.device_list import device_named
from tasks.store.files import write_complete
from tasks.store.var import Var


def run_certify(inventory: Path, name: str, var: Path, output: Path | None) -> int:
    """Certify a device; return 0, or 1 if a check failed. Raises InputError before anything is started."""
    spec = device_named(inventory, name)
    check_reached(load_inventory(inventory), spec)
    if output is not None and (output.is_dir() or not output.absolute().parent.is_dir()):
        raise InputError(f"-o {output}: not a file in a folder that exists; create the folder or name another file")
    from flows.server.settings import prepare_prefect

    places = Var(var.absolute() / "certify" / name)
    prepare_prefect(places.prefect_home)
    from flows.certify.certify import certify
    from tasks.analyse.certify.page import counts, page_text

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    page = output or places.root / "page.md"
    ended = []
    with contextlib.closing(certify(spec, var, date.today())) as checks:
        for each in checks:
            ended.append(each)
            typer.echo(f"{len(ended)} {each.finding.status}: {each.check}, {each.took_s:.1f} s: {each.finding.text}")
    write_complete(page, page_text(name, ended, str(places.root / "logs")).encode())
    typer.echo(f"{counts(ended)}; page: {page}")
    return 1 if any(each.finding.status == "failed" for each in ended) else 0


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    """End the sweep that runs and clear the device on the way out."""
    for known in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(known, signal.SIG_IGN)
    sys.exit(128 + number)
