"""The pages of the site as files, for any web server, for object storage or to open without one.

`published.json` states from which content each page was made. A page is made again only if that changed, and written
only if the page did; pages that are no longer of the site are removed. It is written last, so that an interrupted
publication is completed by the next one. What the morning needs is written first: cells and sessions, the night and its
sweeps, then the home page; histories, devices and models follow. Pages of single sessions and cells are kept for what
changed or failed most recently; where a page was not published, its name is no link.
"""

import hashlib
import json
import multiprocessing
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sql.warehouse import open_read_only
from tasks.analyse.report.data import Row, view_errors
from tasks.analyse.site.origins import ALWAYS, origins_of
from tasks.analyse.site.rows import DeviceNightRow
from tasks.analyse.site.site import Site
from tasks.store.access import file_system, reported

STATE = "published.json"
_BATCH = 10
_READ_TOGETHER = 250
_WORTH_A_PROCESS = 100
"""So many pages take longer than the start of a process."""
_OF_THE_MORNING = ("nights", "sweeps", "cells", "sessions")
_OF_VERDICTS = ("index.html", "feed.atom")
"""Pages beside those of nights that list the verdicts of nights, which a process reads once."""
_LAST = 2
_MOST_STATE_BYTES = 1 << 28
_Given = tuple[Path, frozenset[str], Mapping[type[Row], list[Any]]]
"""What pages are made from: the warehouse file, the addresses that are published, and answers that are known."""
# Of a published file: what the state of a stranger's folder names is removed at times, so no name may lead elsewhere.
_NAME = re.compile(r"(?:[a-z0-9][\w.~-]*/){0,2}[a-z0-9][\w.~-]*")


@dataclass(frozen=True)
class Published:
    """What a publication did, in numbers of files."""

    pages: int
    written: int
    removed: int


def publish(snapshot: Path, location: str, told: Callable[[str], None] = lambda _line: None) -> Published:
    """Write the pages of a warehouse file to a folder or a URL; `told` gets a line while it lasts.

    Raises WarehouseError if the file cannot be read, BundleError if the location cannot be written.
    """
    with open_read_only(snapshot) as connection, view_errors(snapshot):
        site = Site(connection, snapshot.name)
        wanted = origins_of(site)
        site.reader.rows(DeviceNightRow)  # every process needs them, and they take longest to read
    with view_errors(snapshot), reported(location, "the pages cannot be written"):
        before = _read_state(location)
        stale = [name for name, origin in wanted.items() if origin == ALWAYS or before.get(name, ("",))[0] != origin]
        stale.sort(key=_turn)
        state: dict[str, list[str]] = {name: before[name] for name in wanted.keys() - set(stale)}
        written = 0
        for count, made in _made(stale, (snapshot, frozenset(wanted), site.reader.known)):
            changed = {}
            for address, content in made.items():
                sha256 = hashlib.sha256(content).hexdigest()
                state[address] = [wanted[address], sha256]
                if before.get(address, [None, None])[1] != sha256:
                    changed[address] = content
            _write(location, changed)
            written += len(changed)
            told(f"{count} of {len(stale)} pages made, {written} written")
        gone = before.keys() - wanted.keys()
        _remove(location, sorted(gone))
        _write(location, {STATE: json.dumps({"etfarm": version("etfarm"), "pages": state}, sort_keys=True).encode()})
    return Published(len(wanted), written, len(gone))


def _turn(address: str) -> int:
    """Return when a page is written: what the home page shows first, the home page and lists, then all others."""
    folder, _, _ = address.rpartition("/")
    return 0 if folder in _OF_THE_MORNING else 1 if folder in ("", "assets") else _LAST


def _made(stale: Sequence[str], given: _Given) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Yield batches of pages, and how many are made so far; many are made by processes side by side."""
    workers = min(os.cpu_count() or 1, 8, len(stale) // _WORTH_A_PROCESS)
    made: Iterator[dict[str, bytes]]
    count = 0
    with ExitStack() as stack:
        if workers < 2:
            made = map(partial(_make, stack.enter_context(_site(given))), _batches(stale))
        else:
            context = multiprocessing.get_context("spawn")
            pool = stack.enter_context(ProcessPoolExecutor(workers, context, _open, (given,)))
            made = pool.map(_make_here, list(_batches(stale)))
        for pages in made:
            count += len(pages)
            yield count, pages


def _batches(stale: Sequence[str]) -> Iterator[list[str]]:
    """Yield what one process makes at once: ten pages, or many that are read together; small ones come last."""
    kinds: dict[str, list[str]] = {"cells": [], "sessions": [], "morning": [], "nights": [], "histories": [], "": []}
    for address in stale:
        folder = "nights" if address in _OF_VERDICTS else address.partition("/")[0]
        other = "morning" if _turn(address) < _LAST else ""
        kinds[folder if folder in kinds else other].append(address)
    kinds["histories"].sort(key=lambda address: address.rpartition("/")[2])
    for kind, addresses in kinds.items():
        most = _BATCH if kind in ("nights", "morning", "") else _READ_TOGETHER
        yield from (addresses[start : start + most] for start in range(0, len(addresses), most))


_of_process: dict[str, Any] = {}


@contextmanager
def _site(given: _Given) -> Iterator[Site]:
    snapshot, wanted, known = given
    with open_read_only(snapshot) as connection:
        yield Site(connection, snapshot.name, wanted, known)


def _open(given: _Given) -> None:
    """Open the warehouse file for the life of this process."""
    opened = _site(given)
    _of_process.update(opened=opened, site=opened.__enter__())


def _make_here(addresses: Sequence[str]) -> dict[str, bytes]:
    return _make(_of_process["site"], addresses)


def _make(site: Site, addresses: Sequence[str]) -> dict[str, bytes]:
    return {address: file.content.encode() for address, file in site.files(addresses).items() if file is not None}


def _read_state(location: str) -> dict[str, list[str]]:
    """Return origin and hash of each published page; nothing if another version of etfarm wrote them."""
    fs, root = file_system(location)
    try:
        size = fs.info(f"{root}/{STATE}")["size"] if "://" in location else Path(root, STATE).stat().st_size
        kept = json.loads(fs.cat_file(f"{root}/{STATE}", start=0, end=min(size, _MOST_STATE_BYTES)) if size else b"")
        pages: dict[str, list[str]] = kept["pages"] if kept["etfarm"] == version("etfarm") else {}
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
    return {name: origin for name, origin in pages.items() if _NAME.fullmatch(name)}


def _write(location: str, files: dict[str, bytes]) -> None:
    """Write files; a page of a folder appears completely or not at all."""
    fs, root = file_system(location)
    if "://" in location:
        fs.pipe({f"{root}/{name}": content for name, content in files.items()})
        return
    for name, content in files.items():
        path = Path(root) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        unfinished.write_bytes(content)
        unfinished.replace(path)


def _remove(location: str, names: Sequence[str]) -> None:
    fs, root = file_system(location)
    if "://" in location:
        if names:
            fs.rm([f"{root}/{name}" for name in names])
        return
    for name in names:
        (Path(root) / name).unlink(missing_ok=True)
