"""One publication of a site: which files are the farm's own, and in which order they change.

A file is the farm's own if its content is what a publication wrote, as the manifest states. Others stay as they are.
Before pages are written, the manifest states which hashes they get; so a kill at any moment leaves no file that the
next publication does not know. It is written last without them.
"""

import hashlib
from collections.abc import Mapping

from devices.errors import InputError
from tasks.pages.site.destination import Destination
from tasks.pages.site.manifest import MARKER, MOST_MARKER_BYTES, Manifest, manifest_of, parse_manifest
from tasks.pages.site.origins import ALWAYS


class Publication:
    """Writes pages to a destination; `kept` are the addresses at which something stayed that is not the farm's own."""

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
        self.written = self.removed = 0
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
        self.kept += sorted(present.keys() - own)
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
