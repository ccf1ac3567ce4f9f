"""The pages of the site as files, for any web server, for object storage or to open without one.

`published.json` states from which content each page was made. A page is made again only if that changed, and written
only if the page did; pages that are no longer of the site are removed. What the morning needs is
written first: cells and sessions, the night and its sweeps, then the home page; histories, devices and models follow.
Pages of single sessions and cells are kept for what changed or failed most recently; where a page was not published,
its name is no link.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, islice

from devices.errors import InputError
from tasks.pages.site.destination import Destination, open_destination
from tasks.pages.site.page_cache import (
    ALWAYS,
    MARKER,
    MOST_MARKER_BYTES,
    Manifest,
    manifest_of,
    origins_of,
    parse_manifest,
)
from tasks.pages.site.site import Site
from tasks.store.blob_store import reported

_READ_TOGETHER = 250
_SESSIONS_READ_TOGETHER = 1000
"""Pages of sessions are small, and reading some takes as long as reading all that are published."""
_FIRST = ("cells", "sessions", "nights", "sweeps", "assets", "")


class Publication:
    """Writes pages to a destination; `kept` are the addresses at which something stayed that is not the farm's own.

    A file is the farm's own if its content is what a publication wrote, as the manifest states. Others stay as they
    are. Before pages are written, the manifest states which hashes they get; so a kill at any moment leaves no file
    that the next publication does not know. It is written last without them.
    """

    def __init__(self, destination: Destination, location: str, wanted: Mapping[str, str]) -> None:
        """Read the manifest; `wanted` are the pages of the site with their origins. Raises InputError, writes nothing.

        Raises InputError if the destination is neither empty nor one that etfarm published.
        """
        self._destination, self._wanted = destination, wanted
        content = destination.read(MARKER, MOST_MARKER_BYTES)
        if content is None and not destination.is_empty():
            cause = "has files that etfarm did not publish"
            raise InputError(f"{location}: {cause}; name an empty or a new folder (or prefix) for the pages")
        path = f"{location.rstrip('/')}/{MARKER}"
        before = manifest_of({}, {}) if content is None else parse_manifest(content, path)
        self._missing = destination.missing({*wanted, *before.pages, *before.writing})
        self._pages = self._settled(before)
        self._text = content
        self.pages, self.written, self.removed = len(wanted), 0, 0
        self.kept: list[str] = []

    def _settled(self, before: Manifest) -> dict[str, tuple[str, str]]:
        """Return the pages that are there, also those of which a killed publication wrote some."""
        pages = {name: page for name, page in before.pages.items() if name not in self._missing}
        present = self._destination.hashes(before.writing)
        return pages | {name: (ALWAYS, new) for name, new in before.writing.items() if present.get(name) == new}

    @property
    def stale(self) -> set[str]:
        """The pages that have to be made."""
        made = {name: origin for name, (origin, _) in self._pages.items()}
        return {name for name, origin in self._wanted.items() if origin == ALWAYS or made.get(name) != origin}

    def write(self, pages: Mapping[str, bytes]) -> None:
        """Write those of some pages that changed."""
        new = {name: hashlib.sha256(content).hexdigest() for name, content in pages.items()}
        changed = [name for name in pages if self._hash(name) != new[name]]
        present = self._destination.hashes(name for name in changed if name not in self._missing)
        kept = {name for name, found in present.items() if found not in (self._hash(name), new[name])}
        files = {name: pages[name] for name in changed if name not in kept and present.get(name) != new[name]}
        if files:
            self._save({name: new[name] for name in files})
            self._destination.write(files)
        self._pages |= {name: (self._wanted[name], new[name]) for name in pages if name not in kept}
        self._missing -= files.keys()
        self.written += len(files)
        self.kept += sorted(kept)

    def finish(self) -> None:
        """Remove the pages that are no longer of the site, and state in the manifest what there is."""
        gone = self._pages.keys() - self._wanted.keys()
        present = self._destination.hashes(gone)
        own = sorted(name for name, found in present.items() if found == self._hash(name))
        self._destination.remove(own)
        self.removed += len(own)
        self.kept = sorted([*self.kept, *(present.keys() - own)])
        for name in gone:
            del self._pages[name]
        self._save({})

    def _hash(self, name: str) -> str | None:
        return self._pages[name][1] if name in self._pages else None

    def _save(self, writing: Mapping[str, str]) -> None:
        text = manifest_of(self._pages, writing).text()
        if text != self._text:
            self._destination.write({MARKER: text})
            self._text = text


def publish(site: Site, location: str, told: Callable[[str], None] = lambda _line: None) -> Publication:
    """Write the pages to a folder or a URL; `told` gets a line while it lasts.

    The result counts them. Raises BundleError if the location cannot be written, and InputError if it has files of
    others.
    """
    wanted = origins_of(site)
    site.published = wanted.keys()
    with reported(location, "the pages cannot be written"), open_destination(location) as destination:
        publication = Publication(destination, location, wanted)
        _write_stale(site, publication, told)
        publication.finish()
    return publication


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
