"""JSON that others wrote (a runner, a lab, the writer of a bundle): read in one way, and refused if it is ambiguous.

Of a key that an object has twice, each parser keeps another value; such a text has no meaning.
"""

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from devices.foreign_text import one_line

Model = TypeVar("Model", bound=BaseModel)
_MOST_SHOWN = 40


def parse_json(content: str | bytes) -> Any:
    """Return the value of a JSON text; raises ValueError or RecursionError."""
    return json.loads(content, object_pairs_hook=_object)


def read_json(model: type[Model], content: str | bytes, *, context: dict[str, Any] | None = None) -> Model:
    """Return a JSON text as a model; raises ValidationError, also for a key that an object has twice."""
    read = model.model_validate_json(content, context=context)
    try:
        parse_json(content)
    except (ValueError, RecursionError) as error:
        mistake = PydanticCustomError("json", "{cause}", {"cause": one_line(str(error))})
        raise ValidationError.from_exception_data(model.__name__, [{"type": mistake, "input": None}]) from None
    return read


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            values = " and ".join(one_line(json.dumps(each), _MOST_SHOWN) for each in (seen[key], value))
            raise ValueError(f"duplicate key `{one_line(key, _MOST_SHOWN)}`, with {values}")
        seen[key] = value
    return found
