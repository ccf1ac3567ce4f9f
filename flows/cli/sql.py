"""`etfarm sql`: rows of the warehouse as a table, CSV or JSON."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

from devices.errors import InputError
from flows.cli.table import as_table
from flows.publish import readable_warehouse
from sql.warehouse import query


def ask(text_or_file: str, form: str, var: Path, warehouse: Path | None) -> str:
    """Run one query read-only and return its rows as printable text; raises WarehouseError with DuckDB's message."""
    columns, rows = query(readable_warehouse(var, warehouse), _query_text(text_or_file))
    if form == "csv":
        return _as_csv(columns, rows)
    if form == "json":
        named = [dict(zip(columns, map(_for_json, row), strict=True)) for row in rows]
        return json.dumps(named, indent=1, default=str) + "\n"
    return as_table(columns, rows)


def _query_text(text_or_file: str) -> str:
    if not text_or_file.endswith(".sql"):
        return text_or_file
    try:
        return Path(text_or_file).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{text_or_file}: the query file cannot be read ({error.strerror})") from None


def _for_json(value: Any) -> Any:
    """Replace NaN and infinite numbers, which JSON does not support, with None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _for_json(inner) for key, inner in value.items()}
    return [_for_json(inner) for inner in value] if isinstance(value, list | tuple) else value


def _as_csv(columns: list[str], rows: list[tuple[Any, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
