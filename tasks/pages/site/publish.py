"""The pages of the site as files, for any web server, for object storage or to open without one.

`published.json` states from which content each page was made. A page is made again only if that changed, and written
only if the page did; pages that are no longer of the site are removed (`publication.py`). What the morning needs is
written first: cells and sessions, the night and its sweeps, then the home page; histories, devices and models follow.
Pages of single sessions and cells are kept for what changed or failed most recently; where a page was not published,
its name is no link.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from sql.readable import ReadableFile
from tasks.pages.site.destination import open_destination
from tasks.pages.site.origins import origins_of
from tasks.pages.site.publication import Publication
from tasks.pages.site.site import Site
from tasks.results.reader import open_reader
from tasks.store.access import reported

_READ_TOGETHER = 250
_SESSIONS_READ_TOGETHER = 1000
"""Pages of sessions are small, and reading some takes as long as reading all that are published."""
_FIRST = ("cells", "sessions", "nights", "sweeps", "assets", "")


@dataclass(frozen=True)
class Published:
    """What a publication did, in numbers of files."""

    pages: int
    written: int
    removed: int
    kept: Sequence[str]
    """Addresses of the site at which there is something that no publication wrote; it was not changed."""


def publish(
    snapshot: ReadableFile | Path,
    location: str,
    told: Callable[[str], None] = lambda _line: None,
    *,
    take_over: bool = False,
) -> Published:
    """Write the pages of a warehouse file to a folder or a URL; `told` gets a line while it lasts.

    Raises WarehouseError if the file cannot be read, BundleError if the location cannot be written, and InputError if
    it has files of others, or of an earlier version of etfarm without `take_over`.
    """
    with open_reader(snapshot) as reader:
        site = Site(reader, snapshot.name)
        wanted = origins_of(site)
        site.published = wanted.keys()
        with reported(location, "the pages cannot be written"), open_destination(location) as destination:
            publication = Publication(destination, location, wanted, take_over=take_over)
            _write_stale(site, publication, told)
            publication.finish()
    return Published(len(wanted), publication.written, publication.removed, sorted(publication.kept))


def _write_stale(site: Site, publication: Publication, told: Callable[[str], None]) -> None:
    """Make and write the pages that are not up to date: each batch is written while the next one is made."""
    made, stale = 0, publication.stale
    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(publication.write, {})
        for batch in _batches(stale):
            contents = site.contents(batch)
            writing.result()
            if made:
                told(f"{made} of {len(stale)} pages made, {publication.written} written")
            made += len(batch)
            writing = writer.submit(publication.write, contents)
        writing.result()
    told(f"{made} of {len(stale)} pages made, {publication.written} written")


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
