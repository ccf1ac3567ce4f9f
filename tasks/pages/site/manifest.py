"""`published.json`: the marker of a published site. It lists its files with their hashes and is written by nobody else.

It is read as a stranger's file, because whoever can write to the folder can change it.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from devices.errors import InputError
from tasks.bundle.names import Sha256
from tasks.bundle.values import first_mistake
from tasks.pages.site.origins import ALWAYS

MARKER = "published.json"
MOST_MARKER_BYTES = 32 << 20
"""A site of 10,000 pages has 1.5 MB."""
_STEP = "[a-z0-9_~][a-z0-9_.~-]*"


def _other_than_marker(name: str) -> str:
    if name == MARKER:
        raise PydanticCustomError("marker", "is the manifest itself")
    return name


# No part of an address begins with a dot, so none leads elsewhere.
_Address = Annotated[
    str, Field(max_length=250, pattern=rf"^(?:{_STEP}/){{0,2}}{_STEP}$"), AfterValidator(_other_than_marker)
]
_Page = tuple[str, Sha256]


class Manifest(BaseModel):
    """The files of a published site: the version that wrote it, and origin and hash of each page."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    format: Literal["etfarm site 1"]
    etfarm: Annotated[str, Field(max_length=100)]
    pages: dict[_Address, _Page]
    writing: dict[_Address, Sha256]
    """The hashes that pages get now. After a kill, a page has this hash or the one in `pages`, or is missing."""

    def text(self) -> bytes:
        """Return the content of the file, the same for the same pages."""
        return json.dumps(self.model_dump(), sort_keys=True, separators=(",", ":")).encode()


@cache
def _version() -> str:
    return version("etfarm")


def manifest_of(pages: Mapping[str, tuple[str, str]], writing: Mapping[str, str]) -> Manifest:
    """Return the manifest of this version of etfarm, without a check."""
    return Manifest.model_construct(etfarm=_version(), pages=dict(pages), format="etfarm site 1", writing=dict(writing))


def parse_manifest(content: bytes, path: str) -> Manifest:
    """Return the manifest; raises InputError for any other content.

    Another version of etfarm makes other pages, so origins that it states are unknown here.
    """
    try:
        stated = Manifest.model_validate_json(content)
    except ValidationError as error:
        cause = f"not a manifest of etfarm ({first_mistake(error)})"
        raise InputError(f"{path}: {cause}; publish to an empty folder or prefix") from None
    is_of_this = stated.etfarm == _version()
    pages = {name: (origin if is_of_this else ALWAYS, sha256) for name, (origin, sha256) in stated.pages.items()}
    return manifest_of(pages, stated.writing)
