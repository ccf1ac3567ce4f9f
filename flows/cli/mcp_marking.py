"""Texts of others in answers to agents: each stands below a field `foreign_text`, one for each part of an answer.

Names of models, devices and operators, logs, reasons and messages come from files and devices of others. An agent may
take them for instructions, so they are marked. Only fixed words of etfarm, dates and hashes are not. Rows are marked as
a whole, so each is a plain list of values. Text is sanitized and bounded.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
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
from tasks.results.measurements.operators import CATEGORIES

FOREIGN = "foreign_text"
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
    """Return a value for JSON in which every text that others wrote is below a field `foreign_text`.

    In a dictionary, one such field contains all of them by name; a text alone becomes `{"foreign_text": ...}`, and a
    list of dictionaries is a table. Keys of dictionaries are etfarm's and are not marked.
    """
    if isinstance(value, dict):
        foreign = {name: _clean(inner) for name, inner in value.items() if _is_foreign(inner)}
        ours = {name: marked(inner) for name, inner in value.items() if name not in foreign}
        return ours | ({FOREIGN: foreign} if foreign else {})
    if _is_of_rows(value):
        return table_of(value)
    return {FOREIGN: _clean(value)} if _is_foreign(value) else _clean(value)


def table_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the names of the columns, and the first 400 rows in one `foreign_text`, since any value may be foreign."""
    columns, values = columns_and_rows(rows)
    return {"columns": columns, FOREIGN: {"rows": _cleaned(values, 2 * MAX_ROWS)}}


def columns_and_rows(rows: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Return the keys of all rows, and the values of each row in their order; None for a key that it lacks."""
    rows = list(rows)
    columns = list(dict.fromkeys(chain.from_iterable(rows)))
    return columns, [[row.get(column) for column in columns] for row in rows]


def _is_of_rows(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(each, dict) for each in value)


def _is_foreign(value: Any) -> bool:
    """Return whether a value is a text that others wrote, or a list with such a text."""
    if isinstance(value, list | tuple):
        return not _is_of_rows(value) and any(isinstance(each, dict) or _is_foreign(each) for each in value)
    if value is None or isinstance(value, dict | bool | int | float | Decimal | date):
        return False
    return str(value) not in _FIXED_WORDS and not _HASH_OR_DATE.fullmatch(str(value))


def _clean(value: Any) -> Any:
    """Return a value for JSON, its texts bounded; lists have at most 100 items, NaN and infinity become None."""
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, dict):
        return {bounded(str(key)): _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return _cleaned(value, _MAX_ITEMS)
    return value.isoformat() if isinstance(value, date) else bounded(str(value))


def _cleaned(values: Sequence[Any], max_items: int) -> list[Any]:
    """Return the first values for JSON, and a last item with the number of those left out."""
    more = len(values) - max_items
    return [*map(_clean, values[:max_items]), *([{"items_left_out": more}] if more > 0 else [])]


def bounded(text: str, max_chars: int = MAX_CHARS) -> str:
    """Return sanitized text, cut after `max_chars`, with the number of characters left out."""
    more = len(text) - max_chars
    return sanitize(text[:max_chars]) + (f"\u2026 ({more} more characters)" if more > 0 else "")


def page_of(columns: Sequence[str], rows: Sequence[Sequence[Any]], offset: int, limit: int) -> dict[str, Any]:
    """Return a table, as `table_of`, of the first `limit` of `rows`, fewer if they have over 40,000 characters of JSON.

    A first row that alone is longer becomes one cut text. `offset` is the place of the first row; `next_offset` is that
    of the row after the table, None if `rows` has none.
    """
    chars, page = 0, list[Any]()
    for row in rows[:limit]:
        values = [*map(_clean, row)]
        text = json.dumps(values)
        chars += len(text)
        if chars > _MAX_ROW_CHARS:
            page = page or [bounded(text, _MAX_ROW_CHARS)]
            break
        page.append(values)
    after = offset + len(page) if len(page) < len(rows) else None
    return {"columns": columns, FOREIGN: {"rows": page}, "offset": offset, "next_offset": after}
