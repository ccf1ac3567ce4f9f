"""What a number in session.json may be, so that everything that is read fits the columns of the warehouse."""

from typing import Annotated

from pydantic import Field, ValidationError
from pydantic_core import PydanticCustomError

from devices.foreign_text import one_line

MOST_INT = 2**31 - 1
MOST_BIGINT = 2**63 - 1
Count = Annotated[int, Field(ge=0, le=MOST_BIGINT)]
SmallCount = Annotated[int, Field(ge=0, le=MOST_INT)]
Positive = Annotated[int, Field(ge=1, le=MOST_INT)]
SmallInt = Annotated[int, Field(ge=-MOST_INT, le=MOST_INT)]
# How keys of counts, sizes and durations end in the parts of session.json that have no schema.
_COUNTS = ("_ns", "bytes", "count", "cores", "threads_used")
_SMALL = ("cores", "threads_used")
_SHOWN = 40


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


def first_mistake(error: ValidationError) -> str:
    """Return the first mistake as `key`: message, on one line."""
    first = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(step) for step in first["loc"])
    return one_line(f"`{one_line(key, 100)}`: {first['msg']}" if key else first["msg"])


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
