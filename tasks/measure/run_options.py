"""Run-time options of ExecuTorch and its delegates that a sweep compares."""

from typing import Literal

from pydantic import BaseModel, Field


class RunOptions(BaseModel, extra="forbid", frozen=True):
    """One set of options; what it does not state is as the runtime does it by default."""

    load: Literal["mmap"] | None = Field(default=None, description="How the program is loaded: mmap maps its file.")

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """Name and value of each stated option as they stand in the name of a case, sorted."""
        return tuple(sorted((key, str(value)) for key, value in self.model_dump(exclude_none=True).items()))

    def __str__(self) -> str:
        return ",".join(f"{key}={value}" for key, value in self.words) or "{}"
