"""Types for the numbers and times in session.json; their limits make every value fit its column in the warehouse."""

import contextlib
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, Field, ValidationError
from pydantic_core import PydanticCustomError

from devices.untrusted import excerpt

# A night is a date at the farm and a time is UTC: the date may be a day ahead.
_ZONES_APART = timedelta(days=1)
_FIRST_NIGHT = date(2023, 10, 1)
_MAX_REPR_CHARS = 40


def _checked_moment(text: str) -> str:
    with contextlib.suppress(ValueError, OverflowError):
        if datetime.fromisoformat(text).tzinfo is not None and _utc(text):
            return text
    expected = "a time with its UTC offset, such as 2026-01-31T07:00:00+00:00"
    raise PydanticCustomError("time", "{text} is not {expected}", {"text": _short_repr(text), "expected": expected})


def _checked_night(text: str) -> str:
    night = None
    with contextlib.suppress(ValueError):
        night = date.fromisoformat(text)
    if night is None or night.isoformat() != text:
        expected = "an existing date, such as 2026-01-31"
        raise PydanticCustomError("time", "{text} is not {expected}", {"text": _short_repr(text), "expected": expected})
    if fault := night_fault(night):
        raise PydanticCustomError("night", "{night} {fault}", {"night": text, "fault": fault})
    return text


def night_fault(night: date) -> str | None:
    """Return why no session can be of a night, as a predicate `is ...`; None if one can."""
    if night < _FIRST_NIGHT:
        return f"is before {_FIRST_NIGHT}, the first release of ExecuTorch"
    if night - datetime.now(UTC).date() > _ZONES_APART:
        return "is more than a day in the future"
    return None


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


MAX_INT = 2**31 - 1
MAX_INT64 = 2**63 - 1
Count = Annotated[int, Field(ge=0, le=MAX_INT64)]
MAX_BYTES = 2**53
Bytes = Annotated[int, Field(ge=0, le=MAX_BYTES)]
"""A size in memory: sums of a few hundred fit a column, too."""
SmallCount = Annotated[int, Field(ge=0, le=MAX_INT)]
Positive = Annotated[int, Field(ge=1, le=MAX_INT)]
Moment = Annotated[str, AfterValidator(_checked_moment)]
"""A time in ISO 8601 with its UTC offset."""
Night = Annotated[str, AfterValidator(_checked_night)]
"""An existing date in ISO 8601, from ExecuTorch's first release to a day after today."""
MAX_CLOCK_DIFFERENCE_S = 3600.0
"""How far the clocks of a farm and of a lab may differ."""
ClockAhead = Annotated[float, Field(ge=-MAX_CLOCK_DIFFERENCE_S, le=MAX_CLOCK_DIFFERENCE_S, allow_inf_nan=False)]
"""How far one clock is ahead of another, in seconds."""
SmallInt = Annotated[int, Field(ge=-MAX_INT, le=MAX_INT)]
# How keys of counts, sizes and durations end in the parts of session.json that have no schema.
_COUNTS = ("_ns", "bytes", "count", "cores", "threads_used")
_SMALL = ("cores", "threads_used")


def formerly(name: str, former_name: str) -> Any:
    """Return the field information of a key that bundles until 2026-11 have under its former name."""
    return Field(validation_alias=AliasChoices(name, former_name))


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
        if not abs(value) <= (MAX_INT if key.endswith(_SMALL) else MAX_INT64):  # nor is NaN
            raise PydanticCustomError("too_large", f"`{key}` is {_short_repr(value)}, which is out of range")


def require_order(night: str, started_at: str, ended_at: str) -> None:
    """Raise PydanticCustomError if a session ended before it started, or before its night began."""
    if _utc(ended_at) < _utc(started_at):
        raise PydanticCustomError("contradiction", f"`ended_at` is {ended_at}, before `started_at`, {started_at}")
    if date.fromisoformat(night) - _utc(started_at).date() > _ZONES_APART:
        raise PydanticCustomError("contradiction", f"`sweep.night` is {night}, after `started_at`, {started_at}")


def first_mistake(error: ValidationError) -> str:
    """Return the first mistake as `key`: message, on one line."""
    first = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(step) for step in first["loc"])
    message = first["msg"].removeprefix("Value error, ")  # of a sentence that a validator of ours wrote
    return excerpt(f"`{excerpt(key, 100)}`: {message}" if key else message)


def _short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_REPR_CHARS else f"{text[:_MAX_REPR_CHARS]}..."
