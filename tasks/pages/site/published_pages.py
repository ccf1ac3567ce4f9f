"""`published.json`: marks a folder as a published site, and lists its files with their keys and hashes.

It is read as an untrusted file, because everybody who can write to the folder can change it.
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

UNKNOWN = ""
"""The key of a page that a killed publication wrote, which is made again."""
MARKER = "published.json"
MAX_MARKER_BYTES = 32 << 20
"""A site of 10,000 pages has 1.5 MB."""
_NAME = "[a-z0-9_~][a-z0-9_.~-]*"
_Page = tuple[str, Sha256]


def _refuse_marker(name: str) -> str:
    if name == MARKER:
        raise PydanticCustomError("marker", "is the manifest itself")
    return name


# No part of an address begins with a dot, so none leaves the folder.
_Address = Annotated[
    str, Field(max_length=250, pattern=rf"^(?:{_NAME}/){{0,2}}{_NAME}$"), AfterValidator(_refuse_marker)
]


class Manifest(BaseModel):
    """The files of a published site: the key and the hash of each page."""

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
    """Return the manifest; raises InputError for anything else."""
    try:
        return Manifest.model_validate_json(content)
    except ValidationError as error:
        cause = f"not a manifest of etfarm ({first_mistake(error)})"
        raise InputError(f"{path}: {cause}; publish to an empty folder or prefix") from None
