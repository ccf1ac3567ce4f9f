"""What a sweep on demand changes in its file, as a form in Prefect's UI, and the identity of what comes of it."""

import hashlib
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from devices.errors import InputError
from devices.inventory import DeviceSpec, device_named
from tasks.bundle.cell import Variant
from tasks.bundle.values import first_mistake
from tasks.export.recipes import RECIPES
from tasks.export.zoo import MODELS
from tasks.measure.spec import SweepSpec

_DIGITS = 8


def one_of(names: list[str]) -> Any:
    """Return what makes a text a choice of these names: a list in the form; the server refuses any other text."""
    return Field(json_schema_extra={"enum": list(names)})


class Overrides(BaseModel):
    """What to measure instead of what the sweep file states; empty: as in the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: list[Annotated[str, one_of(sorted(MODELS))]] = Field(default=[], description="Models of the zoo.")
    precisions: list[Annotated[str, one_of(list(RECIPES))]] = Field(default=[], description="Recipes.")
    variants: list[Variant] = Field(default=[], description="What XNNPACK may use: SME2, SME without SME2, or neither.")
    devices: list[str] = Field(
        default=[], description="Names of devices of the inventory, instead of the labels in the sweep file."
    )
    sessions: int | None = Field(
        default=None, ge=1, le=1000, description="Sessions per cell, exactly: none ends early (`interval_percent`)."
    )

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits: the same changes have the same ones."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:_DIGITS]


def changed_spec(spec: SweepSpec, overrides: Overrides, folder: Path) -> SweepSpec:
    """Return the sweep with the changes, under another name; the sweep itself if there are none.

    Its name has the digest of the changes: it shares a sweep id, and so a cell, with no other sweep. Raises InputError
    with one sentence if the changes make no sense.
    """
    if overrides == Overrides():
        return spec
    changes: dict[str, Any] = {name: value for name, value in overrides if value and name != "devices"}
    if overrides.devices:
        changes["devices"] = {}
    if overrides.sessions:
        changes["interval_percent"] = None
    changes["name"] = f"{spec.name}-on-demand-{overrides.digest}"
    try:
        return SweepSpec.model_validate({**dict(spec), **changes}, context={"folder": folder})
    except ValidationError as error:
        raise InputError(f"overrides: {first_mistake(error)}") from None


def named_devices(names: list[str], inventory: Path) -> list[DeviceSpec]:
    """Return these devices of the inventory; raises InputError, with what is known, for an unknown or repeated name."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"overrides: duplicate device `{name}`; remove one")
    return [device_named(inventory, name) for name in names]
