"""Versions of ExecuTorch that a sweep states, for the export and for the runner."""

import re
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from devices.errors import FarmError, InputError
from tasks.bundle.runtime import EXPORT, Runtime
from tasks.export.process.environments import find_row, installed_version, read_table

OWN = "own"
MIN_VERSION = "1.5.0"
"""The first version whose wheel contains a C++ runtime."""
_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+"
_Version = Annotated[str, Field(pattern=f"^{_VERSION}$")]


class ExecutorchVersions(BaseModel, extra="forbid", frozen=True):
    """The version that exports and the one that executes; None for that of the farm's own environment."""

    export: _Version | None = Field(default=None, description="Version that exports.", examples=["1.4.1"])
    runner: _Version | None = Field(default=None, description="Version that executes.", examples=["1.5.0"])

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, written: Any) -> Any:
        """`1.5.0` is short for both, `1.4.1` for the export alone: its wheel has no runner. `own` is neither."""
        if isinstance(written, dict | ExecutorchVersions):
            return written
        if written == OWN:
            return {}
        if mistake := version_mistake(text := str(written)):
            raise ValueError(f"{mistake}, or `{OWN}`")
        return {"export": text} | ({"runner": text} if has_runner(text) else {})

    @field_validator("export")
    @classmethod
    def _can_export(cls, version: str | None) -> str | None:
        if version not in (None, installed_version()):
            try:
                find_row(str(version))
            except FarmError as error:
                raise ValueError(str(error)) from None
        return version

    @property
    def runtime(self) -> str:
        """What the name of a case says of both, such as `export=1.4.1`; `default` for the farm's own."""
        export = f"{EXPORT}={self.export}" if self.export else ""
        return ",".join(filter(None, [export, Runtime(runner=self.runner).of_run])) or "default"

    def __str__(self) -> str:
        return f"export {self.export or OWN}, runner {self.runner or OWN}"


def version_mistake(text: str) -> str | None:
    """Return what is wrong with the text of a version; None if it is one."""
    if re.fullmatch(_VERSION, text):
        return None
    return f"`{text}` is not a version of ExecuTorch; write one such as 1.5.1"


def has_runner(version: str) -> bool:
    """Return whether the wheel of a version contains the libraries that a runner is built from."""
    return _as_numbers(version) >= _as_numbers(MIN_VERSION)


def _as_numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def releases_between(text: str) -> list[str]:
    """Return the releases of `1.3.1..1.5.1` that can export, the oldest first; InputError unless there are two."""
    first, _, last = text.partition("..")
    listed = sorted(read_table(), key=_as_numbers)
    for version in (first, last):
        if version not in listed:
            raise InputError(f"--executorch {text}: write two releases as A..B, of {', '.join(listed)}")
    if listed.index(first) >= listed.index(last):
        raise InputError(f"--executorch {text}: the first release is not before the second; exchange them")
    return listed[listed.index(first) : listed.index(last) + 1]


def read_versions(text: str) -> ExecutorchVersions:
    """Return the versions that the word of a command names; raises InputError if it names none."""
    try:
        return ExecutorchVersions.model_validate(text)
    except ValidationError as error:
        raise InputError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
