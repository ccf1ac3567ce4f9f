"""Rows of `layer_value`: the layers of a session in mode numerics."""

from pathlib import Path
from typing import Any

from tasks.bundle.layer_drift import read_layer_drift
from tasks.bundle.names import LAYER_DRIFT
from tasks.bundle.record import SessionRecord


def layers_of(folder: Path, record: SessionRecord) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a bundle without session_key, by table, also of a session that failed.

    Raises ValueError if the file does not match its schema.
    """
    if LAYER_DRIFT not in record.files:
        return {}
    return {"layer_value": [layer.model_dump() for layer in read_layer_drift(folder / LAYER_DRIFT)]}
