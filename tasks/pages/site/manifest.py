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
