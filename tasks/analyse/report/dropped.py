"""How many sessions the newest start of a sweep dropped, kept beside its report: the warehouse has no row of them."""

from pathlib import Path

from tasks.store.files import write_complete

_NAME = "dropped.txt"


def keep_dropped(folder: Path, dropped: str | None) -> None:
    """Keep for the report in `folder` what was dropped and why, such as `8 dropped (...)`; None: nothing was."""
    if dropped is None:
        (folder / _NAME).unlink(missing_ok=True)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        write_complete(folder / _NAME, dropped.encode())


def dropped_of(folder: Path) -> str | None:
    """Return what was kept; None if nothing was dropped."""
    kept = folder / _NAME
    return kept.read_text(encoding="utf-8") if kept.is_file() else None
