"""JSON of others: a key that is there twice is refused, wherever it is."""

import pytest
from pydantic import BaseModel, ValidationError

from devices.foreign_json import parse_json, read_json


class Thing(BaseModel):
    size: int
    parts: list[dict[str, int]] = []


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"size": 1, "size": 2}', "duplicate key `size`, with 1 and 2"),
        ('{"size": 1, "parts": [{"a": 1, "b": 2, "a": 3}]}', "duplicate key `a`, with 1 and 3"),
        ('{"size": 1, "un\\u006bnown": {}, "unknown": "\\u0007"}', 'duplicate key `unknown`, with {} and "\\u0007"'),
    ],
)
def test_a_text_that_parsers_read_in_different_ways_is_refused(text: str, cause: str) -> None:
    with pytest.raises(ValidationError) as refused:
        read_json(Thing, text)
    assert cause in refused.value.errors()[0]["msg"]
    with pytest.raises(ValueError, match="duplicate"):
        parse_json(text)


def test_other_texts_are_read_as_they_are() -> None:
    assert read_json(Thing, b'{"size": 1, "parts": [{"a": 1}, {"a": 2}]}').parts == [{"a": 1}, {"a": 2}]
