"""What a sweep did not export for a reason that is not an error: it has no session, so no bundle tells of it.

A store keeps a file for each sweep and content, `skipped/<sweep id>-<hash>.json`, which is never changed: a later start
of the sweep that skips something else adds one. What was exported since is left out by the view _skipped_delegate.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from devices.untrusted import read_json
from tasks.bundle.names import FileName, Name
from tasks.bundle.record import BundleError
from tasks.bundle.values import first_mistake
from tasks.store.bundle_store import SKIPPED, BundleStore

MAX_CHARS = 2000
_SUFFIX_CHARS = len("-0123456789abcdef.json")


class SkippedModel(BaseModel, extra="forbid", frozen=True):
    """A model and a precision, on one device or on all of them."""

    model: Name
    precision: Name
    reason: Annotated[str, Field(max_length=MAX_CHARS)]
    device: Name | None = None
    """None: on all devices of the sweep."""


class SkippedModels(BaseModel, extra="forbid", frozen=True):
    version: Literal[1] = 1
    sweep_id: FileName
    models: list[SkippedModel]


def skipped_models(reasons: Mapping[tuple[str, str], str]) -> list[SkippedModel]:
    """Return models and precisions that were skipped on all devices, from the reason of each."""
    return [
        SkippedModel(model=model, precision=precision, reason=reason[:MAX_CHARS])
        for (model, precision), reason in reasons.items()
    ]


def record_skipped(store: BundleStore, sweep_id: str, models: list[SkippedModel]) -> None:
    """Keep what a sweep skipped; nothing is written of a sweep that skipped nothing. Raises BundleError."""
    if models:
        ordered = sorted(models, key=lambda each: (each.model, each.precision, each.device or ""))
        content = (SkippedModels(sweep_id=sweep_id, models=ordered).model_dump_json(indent=1) + "\n").encode()
        store.record_skipped(f"{sweep_id}-{hashlib.sha256(content).hexdigest()[:16]}.json", content)


def sweep_of_file(name: str) -> str:
    return name[:-_SUFFIX_CHARS]


def read_skipped(store: BundleStore, name: str) -> SkippedModels:
    """Return the content of a file of `store.skipped_files`; raises BundleError if it is damaged."""
    try:
        return read_json(SkippedModels, store.read_skipped(name))
    except ValidationError as error:
        cause = f"not a record of skipped models ({first_mistake(error)})"
        path = f"{store.location}/{SKIPPED}/{name}"
        raise BundleError(f"{path}: {cause}; restore the file from a backup") from None
