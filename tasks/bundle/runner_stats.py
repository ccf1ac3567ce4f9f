"""stats.json: what the farm's runner states about one session.

A new number of the runner needs a field here and a column of the table `session` with the same name (a migration).
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tasks.bundle.values import Bytes, Count, SmallCount, SmallInt, formerly, require_counts


class ReadSpeed(BaseModel, frozen=True, strict=True, extra="forbid"):
    """How fast so many bytes are read again and again, on all threads."""

    bytes: Count
    bytes_per_s: Count


class SessionColumns(BaseModel):
    """The statistics that are columns of `session`; None where the runner does not report them or ended before."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    load_ns: Count | None = None
    setup_ns: Count | None = None
    model_peak_memory_bytes: Annotated[
        Bytes | None, formerly("model_peak_memory_bytes", "model_peak_resident_bytes")
    ] = None
    start_anonymous_bytes: Bytes | None = None
    start_file_bytes: Bytes | None = None
    load_anonymous_bytes: Bytes | None = None
    load_file_bytes: Bytes | None = None
    load_swapped_bytes: Bytes | None = None
    model_anonymous_bytes: Bytes | None = None
    model_file_bytes: Bytes | None = None
    model_swapped_bytes: Bytes | None = None
    end_anonymous_bytes: Bytes | None = None
    end_file_bytes: Bytes | None = None
    end_swapped_bytes: Bytes | None = None
    first_load_ns: Count | None = None
    first_peak_memory_bytes: Count | None = None
    cache_bytes: Count | None = None
    peak_memory_bytes: Annotated[Count | None, formerly("peak_memory_bytes", "peak_resident_bytes")] = None
    memory_read_bytes_per_s: Count | None = None
    read_speeds: list[ReadSpeed] | None = None
    threads_used: SmallCount | None = None
    outputs_repeat: bool | None = None
    sme_hardware: bool | None = None
    sme_reported: Annotated[bool | None, formerly("sme_reported", "sme_told")] = None
    sme2_hardware: bool | None = None
    sme2_reported: Annotated[bool | None, formerly("sme2_reported", "sme2_told")] = None


class Mapping(BaseModel):
    """The mappings of a name, together: of a file, `program`, `heap`, `stack` or `anonymous`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[str, Field(max_length=255)]
    resident_bytes: Bytes


class Stats(SessionColumns):
    """All of stats.json. What a newer runner adds is kept in the bundle; `unknown` names it."""

    runner_version: str | None = None
    execution_ns: list[Count] | None = None
    untraced_execution_ns: list[Count] | None = None
    etdump_crc32: Count | None = None
    """CRC-32 of the ETDump that the runner wrote, as zlib computes it."""
    mappings: Annotated[list[Mapping] | None, Field(max_length=8)] = None
    """The largest mappings after the first execution, in descending order; None if they were not requested."""
    threads_requested: SmallInt | None = None
    load_mode: str | None = None
    """How the program was loaded: file, mmap, ..."""
    backend_options: dict[str, dict[str, bool | int | str | None]] | None = None
    """The options that were set, by backend and key, with the values that the backends returned; None: none."""
    sme2_requested: Literal["on", "sme1", "off"] | None = None
    exit_reason: str | None = None

    @model_validator(mode="after")
    def _unknown_counts_in_range(self) -> "Stats":
        for key, value in (self.model_extra or {}).items():
            require_counts(key, value)
        return self

    @property
    def unknown(self) -> list[str]:
        return sorted(self.model_extra or {})
