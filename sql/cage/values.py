"""Rows as JSON between a cage and its owner: what arrives becomes data of known types, and nothing is executed."""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

Row = tuple[Any, ...]
MAX_FRAME_BYTES = 256 << 20
"""Largest body of a frame."""
MAX_MESSAGE_CHARS = 2_000
"""Longest text of an error: about a screen."""

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # of a surrogate pair
_TYPE = "\u0000type"  # no column of a view has such a name; a query that makes one gets its own answer wrong
_WRITTEN: Mapping[type, Callable[[Any], Any]] = {
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: lambda value: [value.days, value.seconds, value.microseconds],
    Decimal: str,
    UUID: str,
    bytes: lambda value: base64.b64encode(value).decode(),
    dict: lambda value: [[key, inner] for key, inner in value.items()],
}
_READ: Mapping[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda value: timedelta(*value),
    "Decimal": Decimal,
    "UUID": UUID,
    "bytes": base64.b64decode,
    "dict": lambda value: {_hashable(key): inner for key, inner in value},
}


def encode_rows(rows: Sequence[Row], *, has_maps: bool) -> bytes:
    """Return rows of a query as JSON in ASCII; `has_maps` if a value may be a dictionary whose keys are no text."""
    plain = [[_tag_maps(value) for value in row] for row in rows] if has_maps else rows
    return json.dumps(plain, default=_tag, separators=(",", ":")).encode()


def decode_rows(text: bytes, width: int) -> list[Row]:
    """Return the rows of `encode_rows`, of `width` values each; raises ValueError if the text is anything else."""
    try:
        rows = [tuple(row) for row in _load_json(text, _untag)]
    except (TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if any(len(row) != width for row in rows):
        raise ValueError(f"rows without {width} values")
    return rows


def decode_columns(text: bytes) -> list[str]:
    """Return the names of columns in JSON; raises ValueError if the text is anything else."""
    try:
        columns = _load_json(text)
    except RecursionError:
        columns = None
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ValueError("no names of columns")
    return columns


def _load_json(text: bytes, object_hook: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Return JSON as data; raises ValueError if a text in it cannot be encoded, such as half of a surrogate pair."""
    if _HALF.search(text):
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    return json.loads(text, object_hook=object_hook)


def encode_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a query as values of JSON; raises TypeError for a type that no column has."""
    values = {name: _tag_maps(value) for name, value in parameters.items()}
    encoded: dict[str, Any] = json.loads(json.dumps(values, default=_tag))
    return encoded


def decode_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(json.dumps(parameters), object_hook=_untag)
    return decoded


def _tag(value: Any) -> dict[str, Any]:
    """Return a value that JSON lacks as an object with its type; raises TypeError for a type that no column has."""
    for kind, write in _WRITTEN.items():
        if isinstance(value, kind):
            return {_TYPE: kind.__name__, "value": write(value)}
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent")


def _untag(value: dict[str, Any]) -> Any:
    return _READ[value[_TYPE]](value["value"]) if _TYPE in value else value


def _tag_maps(value: Any) -> Any:
    """Return a value in which each dictionary with other keys than text is tagged, since JSON would change the keys."""
    if isinstance(value, dict):
        inner = {key: _tag_maps(each) for key, each in value.items()}
        return inner if all(isinstance(key, str) for key in inner) else _tag(inner)
    return [_tag_maps(each) for each in value] if isinstance(value, list | tuple) else value


def _hashable(value: Any) -> Any:
    """Return a key of a dictionary as it was before JSON made its tuples lists."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
