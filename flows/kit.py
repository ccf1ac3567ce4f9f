"""Import results of the profiling kit into the store of bundles."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from devices.errors import InputError
from tasks.bundle.record import SessionRecord
from tasks.keep.kit.bundles import import_kit
from tasks.keep.kit.config import read_configs
from tasks.keep.kit.results import find_kit_results
from tasks.prepare.export.recipes import RECIPES
from tasks.store.store import open_store
from tasks.store.var import Var


def import_results(
    folder: Path, device: str | None, precision: str | None, var: Path, bundles: str | None
) -> Iterator[str]:
    """Publish bundles; yield lines that describe the outcome. Raises InputError."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; pass a results folder of the kit or its checkout")
    known = next((each for each in RECIPES if each == precision), None)
    if precision and known is None:
        raise InputError(f"--precision {precision}: unknown precision; use one of {', '.join(RECIPES)}")
    configs = read_configs(folder)
    results = find_kit_results(folder, configs, known)
    if not results:
        raise InputError(f"{folder}: contains no results of the kit (*_t<threads>.etdump or *_xnntrace.log)")
    store = open_store(bundles, Var(var))
    new = import_kit(results, folder, store, device=device)
    yield f"{len(new)} bundles written to {store.location} ({_ends(new)}), {len(results) - len(new)} already there"
    yield from (f"{each.imported.files[0]}: {each.reason}" for each in new if each.imported and each.reason)
    yield "load them with: etfarm load"


def _ends(records: list[SessionRecord]) -> str:
    counts = Counter(record.status for record in records)
    return ", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing new"
