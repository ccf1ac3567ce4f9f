"""Texts of others in answers to agents: each is the value of a field `foreign_text`.

Names of models, devices and operators, logs, reasons and messages come from files and devices of others. An agent may
take them for instructions, so they are marked. Only fixed words of etfarm, dates and hashes are not. Marked text is
sanitized and bounded.
"""

import json
import math
import re
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from itertools import chain
from typing import Any, get_args

from devices.untrusted import sanitize
from tasks.bundle.cell import Mode, Status, Variant
from tasks.export.recipes import RECIPES
from tasks.judge.figures import METRICS
from tasks.judge.incident_parts import Kind, State
from tasks.judge.verdicts.night import Verdict
from tasks.pages.rows import for_json
from tasks.results.measurements.operators import CATEGORIES

MAX_CHARS = 2_000
"""Of one text."""
MAX_ROWS = 200
_MAX_ROW_CHARS = 40_000
_MAX_ITEMS = 100
_FIXED_WORDS = {
    *chain.from_iterable(map(get_args, (Verdict, Variant, Mode, Status, Kind, State))),
    *METRICS,
    *RECIPES,
    *CATEGORIES,
}
_FIXED_WORDS |= {"ms", "bytes", "share", "difference", "before", "after", "different", "same", "unknown", "accurate"}
_HASH_OR_DATE = re.compile(r"[0-9a-f]{8}|[0-9a-f]{16}|[0-9a-f]{64}|\d{4}-\d\d-\d\d")


def marked(value: Any) -> Any:
    """Return a value for JSON in which every text that others wrote is `{"foreign_text": ...}`.

    Keys of dictionaries are etfarm's and are not marked. Lists have at most 100 items; NaN and infinity become None.
    """
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, dict):
        return {name: marked(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return _first_items(value, marked)
    text = value.isoformat() if isinstance(value, date) else str(value)
    is_ours = isinstance(value, date) or text in _FIXED_WORDS or _HASH_OR_DATE.fullmatch(text)
    return text if is_ours else {"foreign_text": bounded(text)}


def marked_cell(value: Any) -> Any:
    """Return `marked` of a value of a query; a dictionary, whose keys may be foreign, becomes one text."""
    if isinstance(value, dict):
        return {"foreign_text": bounded(json.dumps(for_json(value), default=str))}
    return _first_items(value, marked_cell) if isinstance(value, list | tuple) else marked(value)


def _first_items(values: Sequence[Any], transform: Callable[[Any], Any]) -> list[Any]:
    """Return the first 100 values, each transformed, and a last item with the number of those left out."""
    more = len(values) - _MAX_ITEMS
    return [*map(transform, values[:_MAX_ITEMS]), *([{"items_left_out": more}] if more > 0 else [])]


def bounded(text: str, max_chars: int = MAX_CHARS) -> str:
    """Return sanitized text, cut after `max_chars`, with the number of characters left out."""
    more = len(text) - max_chars
    return sanitize(text[:max_chars]) + (f"\u2026 ({more} more characters)" if more > 0 else "")


def paginate(rows: Sequence[Any], offset: int, limit: int, transform: Callable[[Any], Any] = marked) -> dict[str, Any]:
    """Return up to `limit` transformed rows from `offset` on, fewer if they have over 40,000 characters of JSON.

    A first row that alone is longer becomes one cut text. `next_offset` is None after the last row.
    """
    chars, page = 0, list[Any]()
    for row in map(transform, rows[offset : offset + limit]):
        text = json.dumps(row)
        chars += len(text)
        if chars > _MAX_ROW_CHARS:
            page = page or [{"foreign_text": bounded(text, _MAX_ROW_CHARS)}]
            break
        page.append(row)
    after = offset + len(page)
    return {
        "rows": page,
        "offset": offset,
        "next_offset": after if after < len(rows) else None,
        "rows_in_all": len(rows),
    }
