"""Which pages are published and from what each is made, as `published.json` states it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from devices.errors import InputError
from tasks.bundle.names import Sha256
from tasks.bundle.values import first_mistake
from tasks.pages.html import NAVIGATION
from tasks.pages.site.compared import pairs_of
from tasks.pages.site.device import weeks_of
from tasks.pages.site.site import Site
from tasks.results import addresses
from tasks.results.table import Row

ASSETS = tuple(f"assets/{name}" for name in ("page.css", "page.js", "history.js", "vega.js", "names.js", "kept.js"))
_MOST_NIGHTS = 14
"""Of older nights and their sweeps, no page is published; histories show all nights."""
_MOST_SERIES_COMPARED = 2000
"""Of a larger farm, no page of two devices, precisions or variants is published: each takes seconds."""
_DRAWING = "assets/vega.js"
ALWAYS = ""
"""The origin of pages that are made in every publication."""
MARKER = "published.json"
MOST_MARKER_BYTES = 32 << 20
"""A site of 10,000 pages has 1.5 MB."""
_STEP = "[a-z0-9_~][a-z0-9_.~-]*"
_Page = tuple[str, Sha256]


@dataclass(frozen=True)
class FingerprintRow(Row):
    """A number that changes with the content of a night, a model, a device, one of its weeks or a sweep."""

    query = "page_fingerprints"
    kind: str
    name: str
    fingerprint: str


@dataclass(frozen=True)
class KeptRow(Row):
    """A cell or a session that has a published page."""

    query = "published_details"
    kind: str
    name: str
    night: date


def origins_of(site: "Site") -> dict[str, str]:
    """Return the address of each published page with what identifies its content."""
    return dict(_origins(site))


def _origins(site: "Site") -> Iterator[tuple[str, str]]:
    rows = site.reader.rows(FingerprintRow)
    prints = {(row.kind, row.name): row.fingerprint for row in rows}
    for address in (*ASSETS, "feed.atom", *(address for _, address in NAVIGATION)):
        yield address, f"vl-convert {version('vl-convert-python')}" if address == _DRAWING else ALWAYS
    nights = [str(row.night) for row in site.nights[:_MOST_NIGHTS]]
    kept_rows = site.reader.rows(KeptRow, {"nights": nights})
    # Those of older nights are kept as far as the newest ones leave room: pages that lead to them are made again.
    kept_of = Counter((row.kind, str(row.night)) for row in kept_rows)
    of_night = {
        night: f"{prints['night', night]} {kept_of['cell', night]} {kept_of['session', night]}" for night in nights
    }
    for after, night, before in zip([None, *nights], nights, [*nights[1:], None], strict=False):
        yield f"nights/{night}.html", f"{of_night[night]} {before} {after}"
    for later, earlier in pairwise(site.nights[:_MOST_NIGHTS]):
        origin = f"{of_night[str(earlier.night)]} {of_night[str(later.night)]}"
        yield addresses.comparison_page(earlier.night, later.night), origin
    newest = " ".join(prints["sweep", each.sweep_id] for each in site.sweeps.values() if str(each.night) in nights[:1])
    for kind, a, b in pairs_of(site.series) if len(site.series) <= _MOST_SERIES_COMPARED else ():
        yield addresses.arms_page(kind, a, b), newest
    for name, sweep in site.sweeps.items():
        if str(sweep.night) not in of_night:
            continue
        yield f"sweeps/{name}.html", f"{prints['sweep', sweep.sweep_id]} {of_night.get(str(sweep.night))}"
    newest_of = {row.model: str(row.night) for row in sorted(site.series, key=lambda row: row.night)}
    for shown, night in newest_of.items():
        links = f"{kept_of['cell', night]} {nights[-1]}" if night in of_night else ""
        yield addresses.model_page(shown), f"{prints['model', site.reader.models.get(shown, shown)]} {links}"
    for unjudged in site.unjudged.values():
        yield addresses.model_page(unjudged.model), f"{prints['sweep', unjudged.sweep_id]} {nights[:1]}"
    yield from _of_devices(site, prints, nights)
    for kept in kept_rows:
        page = addresses.cell_page if kept.kind == "cell" else addresses.session_page
        yield page(kept.name), f"kept {kept_of['session', str(kept.night)]}"


def _of_devices(
    site: "Site", prints: Mapping[tuple[str, str], str], nights: Sequence[str]
) -> Iterator[tuple[str, str]]:
    decisions = prints["decisions", ""]
    for name, row in site.devices.items():
        yield f"devices/{name}.html", f"{prints.get(('device', row.device))} {row.night} {nights[-1:]} {decisions}"
        for monday in weeks_of(site.series_of[row.device]):
            yield addresses.history_file(row.device, monday), prints["week", f"{row.device}/{monday}"]


def _other_than_marker(name: str) -> str:
    if name == MARKER:
        raise PydanticCustomError("marker", "is the manifest itself")
    return name


# No part of an address begins with a dot, so none leads elsewhere.
_Address = Annotated[
    str, Field(max_length=250, pattern=rf"^(?:{_STEP}/){{0,2}}{_STEP}$"), AfterValidator(_other_than_marker)
]


class _Stated(BaseModel):
    """What the present and the former manifest state: version, and origin and hash of each page."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    etfarm: Annotated[str, Field(max_length=100)]
    pages: dict[_Address, _Page]


class Manifest(_Stated):
    """The files of a published site."""

    format: Literal["etfarm site 1"]
    writing: dict[_Address, Sha256]
    """The hashes that pages get now. After a kill, a page has this hash or the one in `pages`, or is missing."""

    def text(self) -> bytes:
        """Return the content of the file, the same for the same pages."""
        return json.dumps(self.model_dump(), sort_keys=True, separators=(",", ":")).encode()


class _Former(_Stated):
    """The manifest that versions before `--take-over` wrote."""


@cache
def _version() -> str:
    return version("etfarm")


def manifest_of(pages: Mapping[str, tuple[str, str]], writing: Mapping[str, str]) -> Manifest:
    """Return the manifest of this version of etfarm, without a check."""
    return Manifest.model_construct(etfarm=_version(), pages=dict(pages), format="etfarm site 1", writing=dict(writing))


def parse_manifest(content: bytes, path: str, *, take_over: bool) -> Manifest:
    """Return the manifest; that of a former version only to `take_over` its pages. Raises InputError for any other.

    Another version of etfarm makes other pages, so origins that it states are unknown here.
    """
    try:
        stated: _Stated = Manifest.model_validate_json(content)
    except ValidationError as error:
        stated = _former(content, path, first_mistake(error), take_over=take_over)
    is_of_this = stated.etfarm == _version()
    pages = {name: (origin if is_of_this else ALWAYS, sha256) for name, (origin, sha256) in stated.pages.items()}
    return manifest_of(pages, stated.writing if isinstance(stated, Manifest) else {})


def _former(content: bytes, path: str, fault: str, *, take_over: bool) -> _Former:
    """Return the manifest of a former version; raises InputError for anything else, and without `take_over`."""
    try:
        former = _Former.model_validate_json(content)
    except ValidationError:
        raise InputError(f"{path}: not a manifest of etfarm ({fault}); publish to an empty folder or prefix") from None
    if not take_over:
        cause = "an earlier version of etfarm published these pages"
        raise InputError(f"{path}: {cause}; add --take-over to continue here, or publish to an empty folder or prefix")
    return former
