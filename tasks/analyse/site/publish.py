"""The pages of the site as files, for any web server, for object storage or to open without one.

`published.json` states from which content each page was made. A page is made again only if that changed, and written
only if the page did; pages that are no longer of the site are removed. It is written last, so that an interrupted
publication is completed by the next one. What the morning needs is written first: cells and sessions, the night and its
sweeps, then the home page; histories, devices and models follow. Pages of single sessions and cells are kept for what
changed or failed most recently; where a page was not published, its name is no link.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby, islice
from pathlib import Path

from sql.cage.connection import open_readable
from sql.readable import ReadableFile
from tasks.analyse.report.data import view_errors
from tasks.analyse.site.origins import ALWAYS, origins_of
from tasks.analyse.site.site import Site
from tasks.store.access import file_system, reported

STATE = "published.json"
_READ_TOGETHER = 250
_SESSIONS_READ_TOGETHER = 1000
"""Pages of sessions are small, and reading some takes as long as reading all that are published."""
_FIRST = ("cells", "sessions", "nights", "sweeps", "assets", "")
_MOST_STATE_BYTES = 1 << 28
# Of a published file: what the state of a stranger's folder names is removed at times, so no name may lead elsewhere.
_NAME = re.compile(r"(?:[a-z0-9][\w.~-]*/){0,2}[a-z0-9][\w.~-]*")


@dataclass(frozen=True)
class Published:
    """What a publication did, in numbers of files."""

    pages: int
    written: int
    removed: int


def publish(
    snapshot: ReadableFile | Path, location: str, told: Callable[[str], None] = lambda _line: None
) -> Published:
    """Write the pages of a warehouse file to a folder or a URL; `told` gets a line while it lasts.

    Raises WarehouseError if the file cannot be read, BundleError if the location cannot be written.
    """
    with (
        open_readable(snapshot) as connection,
        view_errors(snapshot),
        reported(location, "the pages cannot be written"),
        ThreadPoolExecutor(1) as writer,  # while the next pages are made
    ):
        site = Site(connection, snapshot.name)
        wanted = origins_of(site)
        site.published = wanted.keys()
        before = _read_state(location)
        stale = {name for name, origin in wanted.items() if origin == ALWAYS or before.get(name, ("",))[0] != origin}
        state: dict[str, list[str]] = {name: before[name] for name in wanted.keys() - stale}
        made = written = 0
        writing = writer.submit(_write, location, {})
        for batch in _batches(stale):
            changed = {}
            for address, content in site.contents(batch).items():
                sha256 = hashlib.sha256(content).hexdigest()
                state[address] = [wanted[address], sha256]
                if before.get(address, [None, None])[1] != sha256:
                    changed[address] = content
            made += len(batch)
            written += len(changed)
            writing.result()
            line = f"{made} of {len(stale)} pages made, {written} written"
            writing = writer.submit(_write_and_tell, location, changed, told, line)
        writing.result()
        gone = before.keys() - wanted.keys()
        _remove(location, sorted(gone))
        _write(location, {STATE: json.dumps({"etfarm": version("etfarm"), "pages": state}, sort_keys=True).encode()})
    return Published(len(wanted), written, len(gone))


def _batches(stale: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield pages in the order in which they are written; those of a batch are of one kind and read together."""
    for kind, addresses in groupby(sorted(stale, key=_turn), _kind):
        most = _SESSIONS_READ_TOGETHER if kind == "sessions" else _READ_TOGETHER
        while batch := tuple(islice(addresses, most)):
            yield batch


def _kind(address: str) -> str:
    """Return the folder of a page: `cells`; nothing for home and lists."""
    folder, slash, _ = address.partition("/")
    return folder if slash else ""


def _turn(address: str) -> tuple[int, str, str]:
    """Return when a page is written: what home leads to, home and lists, then others by name."""
    kind = _kind(address)
    place = _FIRST.index(kind) if kind in _FIRST else len(_FIRST)
    return place, kind, address.rpartition("/")[2]


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


def _write_and_tell(location: str, files: dict[str, bytes], told: Callable[[str], None], line: str) -> None:
    _write(location, files)
    told(line)


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
