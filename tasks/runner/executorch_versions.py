"""Versions of ExecuTorch that a sweep states, for the export and for the runner."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator

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

    def __str__(self) -> str:
        return f"export {self.export or OWN}, runner {self.runner or OWN}"
