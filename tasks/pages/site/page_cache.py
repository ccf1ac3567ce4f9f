"""Which pages are published, and from what each is made (its origin): a page is made again only if that changed.

`published.json` marks a folder as a published site and lists its files with their hashes. It is read as an untrusted
file, because everybody who can write to the folder can change it.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from tasks.pages.site.compare import list_pairs
from tasks.pages.site.device import list_weeks
from tasks.pages.site.site import Site
from tasks.results import addresses
from tasks.results.incidents import open_incidents, read_incidents
from tasks.results.series import SeriesRow
from tasks.results.table import Row

ASSETS = tuple(f"assets/{name}" for name in ("page.css", "page.js", "series.js", "vega.js", "names.js", "published.js"))
_MAX_NIGHTS = 14
"""Older nights and their sweeps have no published page; histories show all nights."""
_MAX_SERIES_COMPARED = 2000
"""With more series, no page of two devices, precisions or variants is published: each takes seconds."""
_CHART_SCRIPT = "assets/vega.js"
ALWAYS = ""
"""The origin of pages that are made again in every publication."""
MARKER = "published.json"
MAX_MARKER_BYTES = 32 << 20
"""A site of 10,000 pages has 1.5 MB."""
_NAME = "[a-z0-9_~][a-z0-9_.~-]*"
_Page = tuple[str, Sha256]


@dataclass(frozen=True)
class FingerprintRow(Row):
    """A number that changes with the content of a night, model, device, week of a device, sweep, or the decisions."""

    query = "page_fingerprints"
    kind: str
    name: str
    fingerprint: str


@dataclass(frozen=True)
class PublishedRow(Row):
    """A cell or a session that has a published page."""

    query = "published_details"
    kind: str
    name: str
    night: date


def read_origins(site: Site) -> dict[str, str]:
    """Return the origin of each published page by its address."""
    prints = {(row.kind, row.name): row.fingerprint for row in site.reader.rows(FingerprintRow)}
    origins = dict.fromkeys((*ASSETS, "feed.atom", *(address for _, address in NAVIGATION)), ALWAYS)
    origins[_CHART_SCRIPT] = f"vl-convert {version('vl-convert-python')}"
    nights = [str(row.night) for row in site.nights[:_MAX_NIGHTS]]
    details = site.reader.rows(PublishedRow, {"nights": nights})
    # The number of pages of cells and sessions is limited, so newer nights displace those of older ones. Their counts
    # are part of the origins of pages that link to them.
    counts = Counter((row.kind, str(row.night)) for row in details)
    of_night = {
        night: f"{prints['night', night]} {counts['cell', night]} {counts['session', night]}" for night in nights
    }
    newest = " ".join(prints["sweep", each.sweep_id] for each in site.sweeps.values() if str(each.night) in nights[:1])
    for kind, a, b in list_pairs(site.series) if len(site.series) <= _MAX_SERIES_COMPARED else ():
        origins[addresses.arms_page(kind, a, b)] = newest
    for name, sweep in site.sweeps.items():
        if str(sweep.night) in of_night:
            origins[f"sweeps/{name}.html"] = f"{prints['sweep', sweep.sweep_id]} {of_night[str(sweep.night)]}"
    for detail in details:
        page = addresses.cell_page if detail.kind == "cell" else addresses.session_page
        origins[page(detail.name)] = f"published {counts['session', str(detail.night)]}"
    origins |= _origins_of_nights(site, of_night)
    return origins | _origins_of_models(site, prints, nights, counts) | _origins_of_devices(site, prints, nights)


def _origins_of_nights(site: Site, of_night: Mapping[str, str]) -> dict[str, str]:
    """Return the origins of nights, whose pages link to the nights before and after, and of comparisons of neighbours.

    `of_night` are the origins of their contents, the newest first.
    """
    nights, origins = list(of_night), {}
    for after, night, before in zip([None, *nights], nights, [*nights[1:], None], strict=False):
        origins[f"nights/{night}.html"] = f"{of_night[night]} {before} {after}"
    for later, earlier in pairwise(site.nights[:_MAX_NIGHTS]):
        both = f"{of_night[str(earlier.night)]} {of_night[str(later.night)]}"
        origins[addresses.comparison_page(earlier.night, later.night)] = both
    return origins


def _origins_of_models(
    site: Site, prints: Mapping[tuple[str, str], str], nights: Sequence[str], counts: Mapping[tuple[str, str], int]
) -> dict[str, str]:
    newest_nights = {row.model: str(row.night) for row in sorted(site.series, key=lambda row: row.night)}
    origins = {}
    for model, night in newest_nights.items():
        links = f"{counts['cell', night]} {nights[-1]}" if night in nights else ""
        content = prints["model", site.reader.warehouse_names.get(model, model)]
        of_model = _incidents_print(site, (row for row in site.series if row.model == model))
        origins[addresses.model_page(model)] = f"{content} {links} {of_model}"
    for unjudged in site.unjudged.values():
        origins[addresses.model_page(unjudged.model)] = f"{prints['sweep', unjudged.sweep_id]} {nights[:1]}"
    return origins


def _origins_of_devices(site: Site, prints: Mapping[tuple[str, str], str], nights: Sequence[str]) -> dict[str, str]:
    origins = {}
    for name, row in site.devices.items():
        facts = f"{prints.get(('device', row.device))} {row.night} {nights[-1:]} {prints['decisions', '']}"
        of_device = _incidents_print(site, site.device_series[row.device])
        origins[f"devices/{name}.html"] = f"{facts} {of_device}"
        for monday in list_weeks(site.device_series[row.device]):
            origins[addresses.history_file(row.device, monday)] = prints["week", f"{row.device}/{monday}"]
    return origins


def _incidents_print(site: Site, series: Iterable[SeriesRow]) -> str:
    """Return digits that change with the open incidents of series; empty without one."""
    lines = [row.line for row in open_incidents(read_incidents(site.reader), series)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16] if lines else ""


def _refuse_marker(name: str) -> str:
    if name == MARKER:
        raise PydanticCustomError("marker", "is the manifest itself")
    return name


# No part of an address begins with a dot, so none leaves the folder.
_Address = Annotated[
    str, Field(max_length=250, pattern=rf"^(?:{_NAME}/){{0,2}}{_NAME}$"), AfterValidator(_refuse_marker)
]


class Manifest(BaseModel):
    """The files of a published site: the origin and the hash of each page."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    etfarm: Annotated[str, Field(max_length=100)]
    format: Literal["etfarm site 1"]
    pages: dict[_Address, _Page]
    writing: dict[_Address, Sha256]
    """Hashes of pages that are being written. After a kill, a page has this hash or that of `pages`, or is missing."""

    def text(self) -> bytes:
        """Return the content of the file, the same bytes for the same pages."""
        return json.dumps(self.model_dump(), sort_keys=True, separators=(",", ":")).encode()


@cache
def _version() -> str:
    return version("etfarm")


def build_manifest(pages: Mapping[str, tuple[str, str]], writing: Mapping[str, str]) -> Manifest:
    """Return the manifest of this version of etfarm, without validation."""
    return Manifest.model_construct(etfarm=_version(), pages=dict(pages), format="etfarm site 1", writing=dict(writing))


def parse_manifest(content: bytes, path: str) -> Manifest:
    """Return the manifest; raises InputError for anything else.

    Another version of etfarm makes other pages, so its origins are replaced by ALWAYS.
    """
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        cause = f"not a manifest of etfarm ({first_mistake(error)})"
        raise InputError(f"{path}: {cause}; publish to an empty folder or prefix") from None
    if manifest.etfarm != _version():
        return build_manifest(
            {name: (ALWAYS, sha256) for name, (_, sha256) in manifest.pages.items()}, manifest.writing
        )
    return manifest
