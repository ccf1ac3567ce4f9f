"""The pages of the site as files, for any web server, for object storage or to open without one.

A page is made again only if its key in `published.json` changed (page_keys.py), and written only if the page did. Pages
that the site no longer has are removed. What readers open first is written first: cells and sessions, nights and
sweeps, then the home page; histories, devices and models follow. Only cells and sessions that changed or failed most
recently have a page; a name without a published page is not a link.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, islice

from devices.errors import InputError
from tasks.pages.site.destination import Destination, open_destination
from tasks.pages.site.page_keys import read_keys
from tasks.pages.site.published_pages import MARKER, MAX_MARKER_BYTES, UNKNOWN, build_manifest, parse_manifest
from tasks.pages.site.site import Site
from tasks.store.blob_store import storage_errors

_READ_TOGETHER = 250
_SESSIONS_READ_TOGETHER = 1000
"""Pages of sessions are small, and reading some takes as long as reading all that are published."""
_FIRST = ("cells", "sessions", "nights", "sweeps", "assets", "")


class Publication:
    """Writes pages to a destination, and counts them: those of the site in `pages`, and those `written` and `removed`.

    `foreign` are the addresses of files that stay because others wrote them.

    A file is a publication's if its content has the hash in the manifest; other files stay as they are. Before pages
    are written, the manifest lists the hashes that they get. So the next publication recognizes every file, even after
    a kill. At the end the manifest is written without this list.
    """

    def __init__(self, destination: Destination, location: str, keys: Mapping[str, str]) -> None:
        """Read the manifest, write nothing; `keys` are those of the pages of the site, by address.

        Raises InputError if the destination is neither empty nor one that etfarm published.
        """
        self._destination, self._keys = destination, keys
        content = destination.read(MARKER, MAX_MARKER_BYTES)
        if content is None and not destination.is_empty():
            cause = "has files that etfarm did not publish"
            raise InputError(f"{location}: {cause}; name an empty or a new folder (or prefix) for the pages")
        path = f"{location.rstrip('/')}/{MARKER}"
        before = build_manifest({}, {}) if content is None else parse_manifest(content, path)
        self._missing = destination.missing({*keys, *before.pages, *before.writing})
        # Pages that exist, also those that a killed publication wrote.
        present = destination.hashes(before.writing)
        self._pages = {name: page for name, page in before.pages.items() if name not in self._missing}
        self._pages |= {name: (UNKNOWN, new) for name, new in before.writing.items() if present.get(name) == new}
        self._text = content
        self.pages, self.written, self.removed = len(keys), 0, 0
        self.foreign: list[str] = []

    @property
    def stale(self) -> set[str]:
        """The pages to make: their key is new, or they are missing."""
        return {name for name, key in self._keys.items() if name not in self._pages or self._pages[name][0] != key}

    def write(self, pages: Mapping[str, bytes]) -> None:
        """Write those of some pages that changed, except over files that others wrote, which are added to `foreign`."""
        new = {name: hashlib.sha256(content).hexdigest() for name, content in pages.items()}
        changed = [name for name in pages if self._published_hash(name) != new[name]]
        present = self._destination.hashes(name for name in changed if name not in self._missing)
        foreign = {name for name, sha256 in present.items() if sha256 not in (self._published_hash(name), new[name])}
        files = {name: pages[name] for name in changed if name not in foreign and present.get(name) != new[name]}
        if files:
            self._save_manifest({name: new[name] for name in files})
            self._destination.write(files)
        self._pages |= {name: (self._keys[name], new[name]) for name in pages if name not in foreign}
        self._missing -= files.keys()
        self.written += len(files)
        self.foreign += sorted(foreign)

    def finish(self) -> None:
        """Remove the pages that the site no longer has, except files that others changed, and write the manifest."""
        gone = self._pages.keys() - self._keys.keys()
        present = self._destination.hashes(gone)
        unchanged = sorted(name for name, sha256 in present.items() if sha256 == self._published_hash(name))
        self._destination.remove(unchanged)
        self.removed += len(unchanged)
        self.foreign = sorted([*self.foreign, *(present.keys() - unchanged)])
        for name in gone:
            del self._pages[name]
        self._save_manifest({})

    def _published_hash(self, name: str) -> str | None:
        """Return the hash of the page that a publication wrote; None if none did, or if the page is missing."""
        return self._pages[name][1] if name in self._pages else None

    def _save_manifest(self, writing: Mapping[str, str]) -> None:
        """Write the manifest if it changed; `writing` are the hashes of the pages that are written next."""
        text = build_manifest(self._pages, writing).text()
        if text != self._text:
            self._destination.write({MARKER: text})
            self._text = text


def publish(site: Site, location: str, report_progress: Callable[[str], None] = lambda _line: None) -> Publication:
    """Write the pages to a folder or a URL; `report_progress` gets a line after each batch.

    The result counts the pages. Raises BundleError if the location cannot be written, and InputError if it is
    neither empty nor a site that etfarm published.
    """
    keys = read_keys(site)
    site.published = keys.keys()
    with storage_errors(location, "the pages cannot be written"), open_destination(location) as destination:
        publication = Publication(destination, location, keys)
        _write_stale(site, publication, report_progress)
        publication.finish()
    return publication


def _write_stale(site: Site, publication: Publication, report_progress: Callable[[str], None]) -> None:
    """Make and write the pages that are not up to date: a thread writes each batch while the next one is made."""
    count, stale = 0, publication.stale
    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(publication.write, {})
        for batch in _batches(stale):
            contents = site.contents(batch)
            writing.result()
            if count:
                report_progress(f"{count} of {len(stale)} pages made, {publication.written} written")
            count += len(batch)
            writing = writer.submit(publication.write, contents)
        writing.result()
    report_progress(f"{count} of {len(stale)} pages made, {publication.written} written")


def _batches(stale: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield pages in the order in which they are written; those of a batch are of one kind and read together.

    First what the home page links to, then the home page and lists, then the others by name.
    """

    def kind(address: str) -> str:
        folder, slash, _ = address.partition("/")
        return folder if slash else ""

    def order(address: str) -> tuple[int, str, str]:
        rank = _FIRST.index(kind(address)) if kind(address) in _FIRST else len(_FIRST)
        return rank, kind(address), address.rpartition("/")[2]

    for folder, addresses in groupby(sorted(stale, key=order), kind):
        size = _SESSIONS_READ_TOGETHER if folder == "sessions" else _READ_TOGETHER
        while batch := tuple(islice(addresses, size)):
            yield batch
