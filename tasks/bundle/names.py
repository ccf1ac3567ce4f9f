"""The names that a bundle uses: its files, and what a session, a sweep or a file may be called."""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from devices.device import FILE_LIMIT_BYTES
from devices.untrusted import sanitize_line

RECORD = "session.json"
ETDUMP = "model.etdump"
STATS = "stats.json"
PROFILE = "kernel_profile.json"
COUNTS = "kernel_counts.json"
SELECTED = "selected_kernels.json"
"""Of bundles of mode selected, which older farms measured."""
LAYER_DRIFT = "layer_drift.json"
SOURCES = "sources.json"
MAX_RECORD_BYTES = 16 << 20
"""Of a session.json, which has some 10 kB."""
MAX_FILE_BYTES = FILE_LIMIT_BYTES
"""Of each other file of a bundle: what a device may send."""
MAX_LOG_BYTES = 16 << 20
"""Of a log; what is more is cut out of its middle."""
_MAX_NAME_CHARS = 40
_MAX_NAME_BYTES = 200  # file systems take 255; the store puts part of a hash in front


def checked_file_name(name: str) -> str:
    """Return `name` unless it is a path (path traversal), hidden, too long or unprintable.

    Raises PydanticCustomError, a ValueError.
    """
    is_path = "/" in name or "\\" in name or name.startswith(".")
    has_room = 0 < len(name.encode()) <= _MAX_NAME_BYTES
    if is_path or not has_room or sanitize_line(name) != name:
        raise PydanticCustomError("name", "{name} is not the name of a file or folder", {"name": repr(name)})
    return name


def checked_name(name: str) -> str:
    """Return `name` unless it is blank or contains NUL; raises PydanticCustomError, a ValueError."""
    if not name.strip() or "\0" in name:
        cause = "{name} is not a name: it is empty or contains NUL"
        raise PydanticCustomError("name", cause, {"name": repr(sanitize_line(name)[:_MAX_NAME_CHARS])})
    return name


SessionId = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Name = Annotated[str, AfterValidator(checked_name)]
"""The name of a model, a device, a recipe: any text that is not blank."""
FileName = Annotated[str, AfterValidator(checked_file_name)]
"""The plain name of a file or folder, without a path and not hidden."""
