"""Versions of ExecuTorch that a sweep states, for the export and for the runner."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, model_validator

from devices.errors import InputError
from tasks.bundle.runtime import EXPORT, Runtime

OWN = "own"
_Version = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")]


class ExecutorchVersions(BaseModel, extra="forbid", frozen=True):
    """The version that exports and the one that executes; None for that of the farm's own environment."""

    export: _Version | None = None
    runner: _Version | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, written: Any) -> Any:
        """`1.5.0` is short for both; `own` for neither."""
        if not isinstance(written, str):
            return written
        return {} if written == OWN else {"export": written, "runner": written}

    @property
    def runtime(self) -> str:
        """What the name of a case says of both, such as `export=1.4.1`; `default` for the farm's own."""
        export = f"{EXPORT}={self.export}" if self.export else ""
        return ",".join(filter(None, [export, Runtime(runner=self.runner).of_run])) or "default"

    def __str__(self) -> str:
        return f"export {self.export or OWN}, runner {self.runner or OWN}"


def read_versions(text: str) -> ExecutorchVersions:
    """Return the versions that the word of a command names; raises InputError if it names none."""
    try:
        return ExecutorchVersions.model_validate(text)
    except ValidationError:
        raise InputError(f"`{text}` is not a version of ExecuTorch; write one such as 1.5.1, or `{OWN}`") from None
