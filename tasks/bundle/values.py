"""What a number in session.json may be, so that everything that is read fits the columns of the warehouse."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from devices.errors import one_line

MOST_INT = 2**31 - 1
MOST_BIGINT = 2**63 - 1
Count = Annotated[int, Field(ge=0, le=MOST_BIGINT)]
SmallCount = Annotated[int, Field(ge=0, le=MOST_INT)]
Positive = Annotated[int, Field(ge=1, le=MOST_INT)]
SmallInt = Annotated[int, Field(ge=-MOST_INT, le=MOST_INT)]
_MOST_NAME_BYTES = 200  # file systems take 255; the store puts part of a hash in front
# How keys of counts, sizes and durations end in the parts of session.json that have no schema.
_COUNTS = ("_ns", "bytes", "count", "cores", "threads_used")
_SMALL = ("cores", "threads_used")
# The statistics of the runner that the warehouse has columns for; None where the runner does not report them.
_STATS_COUNTS = ("load_ns", "model_peak_resident_bytes", "peak_resident_bytes", "threads_used")
_STATS_TIMES = ("execution_ns", "untraced_execution_ns")
_STATS_FLAGS = ("outputs_repeat", "sme_hardware", "sme_told", "sme2_hardware", "sme2_told")
_SHOWN = 40


def _plain_name(name: str) -> str:
    """Return `name` if a file or folder can have it; others would lead out of the folder of a bundle."""
    has_room = len(name.encode()) <= _MOST_NAME_BYTES
    if not has_room or not name.isprintable() or name.startswith(".") or "/" in name or "\\" in name or not name:
        raise PydanticCustomError("name", "{name} is not the name of a file or folder", {"name": repr(name)})
    return name


SessionId = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
FileName = Annotated[str, AfterValidator(_plain_name)]
"""The plain name of a file or folder, without a path and not hidden."""


def require_counts(key: str, value: object) -> None:
    """Raise PydanticCustomError if a count is negative or a number is too large, in a part without a schema."""
    if isinstance(value, dict):
        for name, inner in value.items():
            require_counts(f"{key}.{name}", inner)
    elif isinstance(value, list):
        for inner in value:
            require_counts(key, inner)
    elif isinstance(value, int | float):
        if value < 0 and key.endswith(_COUNTS):
            raise PydanticCustomError("negative", f"`{key}` is {value}, which is negative")
        if not abs(value) <= (MOST_INT if key.endswith(_SMALL) else MOST_BIGINT):  # nor is NaN
            raise PydanticCustomError("too_large", f"`{key}` is {_shown(value)}, which is out of range")


def require_stats(stats: dict[str, Any] | None) -> None:
    """Raise PydanticCustomError unless the statistics that are loaded have the right types and ranges."""
    require_counts("stats", stats)
    for name in _STATS_COUNTS:
        value = (stats or {}).get(name)
        if value is not None and type(value) is not int:
            raise PydanticCustomError("count", f"`stats.{name}` is {_shown(value)}, which is not a count")
    for name in _STATS_TIMES:
        values = (stats or {}).get(name)
        if values is not None and not (isinstance(values, list) and all(type(each) is int for each in values)):
            raise PydanticCustomError("counts", f"`stats.{name}` is {_shown(values)}, which is not a list of counts")
    for name in _STATS_FLAGS:
        value = (stats or {}).get(name)
        if value is not None and type(value) is not bool:
            raise PydanticCustomError("flag", f"`stats.{name}` is {_shown(value)}, not true or false")


def first_mistake(error: ValidationError) -> str:
    """Return the first mistake as `key`: message, on one line."""
    first = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(step) for step in first["loc"])
    return one_line(f"`{one_line(key, 100)}`: {first['msg']}" if key else first["msg"])


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
