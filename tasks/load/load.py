"""Load bundles and loose ETDumps into the warehouse: each exactly once, also after a crash, and only valid ones."""

import contextlib
import logging
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devices.untrusted import UntrustedFileError
from sql.errors import RowsRefused, WarehouseError
from sql.warehouse import keep_open, writing
from tasks.judge.refresh import judge_series
from tasks.load.commit import Loader, ledger_keys, stored_session_ids
from tasks.load.parse import parse
from tasks.rows.rows import Rows, read_session_id
from tasks.store.bundle_store import LoadedSessions
from tasks.store.folder import content_sha256, find_results

_log = logging.getLogger(__name__)
_BATCH_EVENTS = 1_000_000  # about one second and 50 MB; a killed load loses at most one batch
_BATCH_SESSIONS = 256


@dataclass
class LoadResult:
    loaded: int = 0
    already: int = 0
    """Number of bundles and ETDumps whose content is already in the warehouse."""
    refused: list[tuple[Path, str]] = field(default_factory=list)
    """Path and reason of each that was not loaded."""
    forgotten: int = 0
    """Number of those left out because of `etfarm decisions forget`."""

    def add(self, other: "LoadResult") -> None:
        self.loaded += other.loaded
        self.already += other.already
        self.refused += other.refused
        self.forgotten += other.forgotten


def load_paths(
    paths: Sequence[Path], warehouse: Path, forgotten: Container[str] = (), *, judges: bool = True
) -> LoadResult:
    """Load `paths` and everything below them: bundles (folders with session.json) and other .etdump files.

    Each is loaded once by content, in transactions of up to 256 sessions, then the series are judged, once for all. A
    damaged bundle is reported in the result and skipped; sessions whose ids are `forgotten` are counted and skipped.
    Raises WarehouseError if the warehouse cannot be written.
    """
    with contextlib.ExitStack() as kept_open:

        def find_loaded(hashes: Collection[str]) -> set[str]:
            kept_open.enter_context(keep_open(warehouse))
            return find_loaded_hashes(hashes, warehouse)

        fresh, result = _find_fresh(paths, find_loaded, forgotten)
        batch, events = list[Rows](), 0
        for number, (path, parsed) in enumerate(parse(fresh), 1):
            if isinstance(parsed, str):
                result.refused.append((path, parsed))
            else:
                batch.append(parsed)
                events += parsed.events
            is_full = len(batch) == _BATCH_SESSIONS or events >= _BATCH_EVENTS
            if is_full:
                kept_open.close()  # between the batches of a large load, other processes write
            if batch and (is_full or number == len(fresh)):
                result.add(_commit_batch(batch, warehouse, kept_open))
                _log.info("loaded %d of %d, refused %d", result.loaded, len(fresh), len(result.refused))
                batch, events = [], 0
        if judges:
            judge_missing(warehouse)
    return result


def judge_missing(warehouse: Path) -> None:
    """Judge every night without a verdict, such as a killed load leaves; creates no warehouse."""
    if warehouse.exists():
        with writing(warehouse) as connection:
            judge_series(connection)


def refusals(paths: Sequence[Path], loaded: LoadedSessions, forgotten: Container[str] = ()) -> list[tuple[Path, str]]:
    """Return what a load could not read below `paths`, with the reasons, unless `loaded` or `forgotten`."""
    fresh, _ = _find_fresh(paths, loaded, forgotten)
    return [(path, parsed) for path, parsed in parse(fresh) if isinstance(parsed, str)]


def find_loaded_hashes(hashes: Collection[str], warehouse: Path) -> set[str]:
    """Return those of the hashes (of session.json or a loose ETDump) that are loaded; creates no warehouse."""
    if not hashes or not warehouse.exists():
        return set()
    with writing(warehouse) as connection:
        return set(ledger_keys(connection, list(hashes)))


def find_loaded_sessions(session_ids: Collection[str], warehouse: Path) -> set[str]:
    """Return those of the session ids that the warehouse contains; creates no warehouse."""
    if not session_ids or not warehouse.exists():
        return set()
    with writing(warehouse) as connection:
        return stored_session_ids(connection, list(session_ids))


def _find_fresh(
    paths: Sequence[Path], loaded: LoadedSessions, forgotten: Container[str]
) -> tuple[list[Path], LoadResult]:
    """Return the folders of bundles, then .etdump files outside any bundle, each once, that are not loaded yet.

    The result counts those that are loaded or forgotten, and refuses the `paths` in which there is nothing to load.
    """
    result, candidates = LoadResult(), dict[Path, None]()
    for path in paths:
        inside = list(find_results(path))
        candidates.update(dict.fromkeys(inside))
        if path.is_dir() and not inside:
            result.refused.append((path, f"{path}: contains neither a bundle nor an .etdump file"))
        elif not inside:
            is_other = "not a file or folder; pass bundles or .etdump files"
            result.refused.append((path, f"{path}: {is_other if path.exists() else 'no such file or folder'}"))
    remaining = [path for path in candidates if not forgotten or read_session_id(path) not in forgotten]
    result.forgotten = len(candidates) - len(remaining)
    hashes: dict[Path, str] = {}
    for path in remaining:
        with contextlib.suppress(UntrustedFileError):  # reported when it is read again
            hashes[path] = content_sha256(path)
    loaded_hashes = loaded(hashes.values())
    fresh = [path for path in remaining if hashes.get(path) not in loaded_hashes]
    result.already = len(remaining) - len(fresh)
    return sorted(fresh, key=lambda path: not path.is_dir()), result  # bundles contain more than a loose ETDump


def _commit_batch(batch: list[Rows], warehouse: Path, kept_open: contextlib.ExitStack) -> LoadResult:
    """Write a batch in one transaction; if the warehouse refuses its rows, write each session separately."""
    result = LoadResult()
    try:
        with writing(warehouse) as connection:
            loader = Loader(connection, batch)
            for rows in batch:
                if loader.has(rows.sha256):
                    result.already += 1
                elif refusal := loader.add(rows):
                    result.refused.append((rows.path, refusal))
                else:
                    result.loaded += 1
            loader.flush()
    except Exception as error:  # unexpected rows must not keep the others from being loaded
        if isinstance(error, WarehouseError) and not isinstance(error, RowsRefused):
            raise
        kept_open.close()  # after an internal error, DuckDB needs a fresh start
        result = LoadResult()
        if len(batch) == 1:
            cause = " ".join(str(error).split())
            result.refused.append((batch[0].path, f"{batch[0].path}: the warehouse refused its rows ({cause})"))
            return result
        for rows in batch:
            result.add(_commit_batch([rows], warehouse, kept_open))
    return result
