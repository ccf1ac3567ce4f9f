"""Load bundles and loose ETDumps into the warehouse: each exactly once, also after a crash, and only valid ones."""

import contextlib
import logging
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from devices.foreign_file import ForeignFileError
from sql.errors import RowsRefused, WarehouseError
from sql.warehouse import writing
from tasks.judge.refresh import judge_series
from tasks.load.commit import Loader, known_contents, known_sessions
from tasks.load.parse import parse
from tasks.rows.rows import Rows, session_id_of
from tasks.store.bundle_store import LoadedSessions
from tasks.store.folder import content_sha256, find_results

_log = logging.getLogger(__name__)
_BATCH_EVENTS = 1_000_000  # about one second and 50 MB; a killed load loses at most one batch
_BATCH_SESSIONS = 256


@dataclass
class LoadResult:
    """The outcome of loading bundles and loose ETDumps."""

    loaded: int = 0
    already: int = 0
    """Already in the warehouse, by content."""
    refused: list[tuple[Path, str]] = field(default_factory=list)
    """Path and reason of each; nothing of them was loaded."""
    forgotten: int = 0
    """Left out because `etfarm decisions forget` named them."""

    def add(self, other: "LoadResult") -> None:
        """Add the counts and refusals of another load."""
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
    result = LoadResult()
    found = _without_forgotten(_find(paths, result), forgotten, result)
    fresh = _without_loaded(found, partial(loaded_contents, warehouse=warehouse), result)
    for batch in _batches(fresh, result):
        _commit(batch, warehouse, result)
        _log.info("loaded %d of %d, refused %d", result.loaded, len(fresh), len(result.refused))
    if judges:
        judge_missing(warehouse)
    return result


def judge_missing(warehouse: Path) -> None:
    """Judge every series without verdicts, also those that a killed load left; creates no warehouse."""
    if warehouse.exists():
        with writing(warehouse) as connection:
            judge_series(connection)


def refusals(paths: Sequence[Path], known: LoadedSessions, forgotten: Container[str] = ()) -> list[tuple[Path, str]]:
    """Return what a load of `paths` would refuse, with the reasons; nothing is loaded.

    Bundles that a warehouse contains, which `known` returns, are not read again.
    """
    result = LoadResult()
    found = _without_forgotten(_find(paths, result), forgotten, result)
    fresh = _without_loaded(found, known, result)
    return [(path, parsed) for path, parsed in parse(fresh) if isinstance(parsed, str)]


def loaded_contents(hashes: Collection[str], warehouse: Path) -> set[str]:
    """Return those of the hashes (of session.json or a loose ETDump) that are loaded; creates no warehouse."""
    if not hashes or not warehouse.exists():
        return set()
    with writing(warehouse) as connection:
        return set(known_contents(connection, list(hashes)))


def contained_sessions(session_ids: Collection[str], warehouse: Path) -> set[str]:
    """Return those of the session ids that the warehouse contains; creates no warehouse."""
    if not session_ids or not warehouse.exists():
        return set()
    with writing(warehouse) as connection:
        return known_sessions(connection, list(session_ids))


def _find(paths: Iterable[Path], result: LoadResult) -> list[Path]:
    """Return the folders of bundles, then .etdump files outside any bundle, each once."""
    found: dict[Path, None] = {}
    for path in paths:
        inside = list(find_results(path))
        if not inside:
            result.refused.append((path, _refusal(path)))
        found.update(dict.fromkeys(inside))
    return sorted(found, key=lambda path: not path.is_dir())  # bundles first: they contain more than a loose ETDump


def _refusal(path: Path) -> str:
    if path.is_dir():
        return f"{path}: contains neither a bundle nor an .etdump file"
    if path.exists():
        return f"{path}: not a file or folder; pass bundles or .etdump files"
    return f"{path}: no such file or folder"


def _without_forgotten(found: list[Path], forgotten: Container[str], result: LoadResult) -> list[Path]:
    if not forgotten:
        return found
    kept = [path for path in found if session_id_of(path) not in forgotten]
    result.forgotten = len(found) - len(kept)
    return kept


def _without_loaded(found: list[Path], known: LoadedSessions, result: LoadResult) -> list[Path]:
    """Return the paths whose content is not in the ledger yet."""
    hashes: dict[Path, str] = {}
    for path in found:
        with contextlib.suppress(ForeignFileError):  # reported when it is read again
            hashes[path] = content_sha256(path)
    loaded = known(hashes.values())
    fresh = [path for path in found if hashes.get(path) not in loaded]
    result.already += len(found) - len(fresh)
    return fresh


def _batches(paths: Sequence[Path], result: LoadResult) -> Iterator[list[Rows]]:
    """Read and check each path; yield the valid ones, in batches of one transaction each."""
    batch: list[Rows] = []
    for path, parsed in parse(paths):
        if isinstance(parsed, str):
            result.refused.append((path, parsed))
        else:
            batch.append(parsed)
        if len(batch) == _BATCH_SESSIONS or sum(rows.events for rows in batch) >= _BATCH_EVENTS:
            yield batch
            batch = []
    if batch:
        yield batch


def _commit(batch: list[Rows], warehouse: Path, result: LoadResult) -> None:
    """Write a batch in one transaction; if the warehouse refuses its rows, write each session separately."""
    outcome = LoadResult()
    try:
        with writing(warehouse) as connection:
            loader = Loader(connection, batch)
            for rows in batch:
                if loader.has(rows.sha256):
                    outcome.already += 1
                elif refusal := loader.add(rows):
                    outcome.refused.append((rows.path, refusal))
                else:
                    outcome.loaded += 1
            loader.flush()
    except Exception as error:  # rows that nobody foresaw must not keep the others from being loaded
        if isinstance(error, WarehouseError) and not isinstance(error, RowsRefused):
            raise
        if len(batch) > 1:
            for rows in batch:
                _commit([rows], warehouse, result)
            return
        cause = " ".join(str(error).split())
        outcome = LoadResult(refused=[(batch[0].path, f"{batch[0].path}: the warehouse refused its rows ({cause})")])
    result.add(outcome)
