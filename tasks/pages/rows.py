"""Rows as sanitized text: CSV, JSON or Markdown, a block of rows at a time."""

import csv
import io
import json
import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from devices.errors import InputError
from devices.untrusted import sanitize, sanitize_line
from sql.cage.cage import distinct_names
from tasks.pages.markdown import escaped

_KEYS = (str, int, float, type(None))  # of objects in JSON; json writes them as text
Blocks = Iterable[Sequence[tuple[Any, ...]]]
"""Rows in blocks, such as those of a query's answer."""


def as_text(columns: Sequence[str], blocks: Blocks, form: str) -> Iterator[str]:
    """Yield the rows in pieces, as `csv`, `json` or `markdown`; `table_lines` has them for people.

    No text can act on a terminal that shows them: JSON escapes every character outside ASCII, the other formats replace
    control and bidirectional control characters with U+FFFD. Raises InputError for a value nested too deeply.
    """
    writers = {"csv": _as_csv, "json": _as_json, "markdown": _as_markdown}
    try:
        yield from writers[form](columns, blocks)
    except RecursionError:
        raise nested_error(form) from None


def nested_error(form: str) -> InputError:
    return InputError(f"a value is nested too deeply for {form}; select a part of it")


def short_text(value: Any) -> str:
    """Return a value in one line, floats with 6 digits, NULL as nothing."""
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else sanitize_line(value)


def _as_csv(columns: Sequence[str], blocks: Blocks) -> Iterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for block in blocks:
        writer.writerows(block)
        yield sanitize(text.getvalue())
        text.seek(0)
        text.truncate()
    yield sanitize(text.getvalue())


def _as_json(columns: Sequence[str], blocks: Blocks) -> Iterator[str]:
    names = distinct_names(list(columns))
    before = "[\n"
    for block in blocks:
        rows = (dict(zip(names, map(for_json, row), strict=True)) for row in block)
        texts = (json.dumps(row, indent=1, default=str) for row in rows)
        # json does not escape DEL
        yield before + ",\n".join(textwrap.indent(text.replace("\x7f", "\\u007f"), " ") for text in texts)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def for_json(value: Any) -> Any:
    """Return a value with NaN and infinite numbers as None, and keys such as dates as text: JSON supports neither."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, _KEYS) else str(key): for_json(inner) for key, inner in value.items()}
    return [for_json(inner) for inner in value] if isinstance(value, list | tuple) else value


def _as_markdown(columns: Sequence[str], blocks: Blocks) -> Iterator[str]:
    def line(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |\n"

    yield line([escaped(column) for column in columns]) + line(["---"] * len(columns))
    for block in blocks:
        yield "".join(line([escaped(short_text(value)) for value in row]) for row in block)
