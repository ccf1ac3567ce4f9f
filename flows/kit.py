"""Import results of the profiling kit into the store of bundles."""

from collections import Counter
from pathlib import Path

from devices.errors import InputError
from devices.inventory import check_name
from tasks.bundle.record import SessionRecord
from tasks.export.recipes import RECIPES
from tasks.maintain.kit.bundles import import_kit
from tasks.maintain.kit.config import read_configs
from tasks.maintain.kit.results import find_kit_results
from tasks.store.store import open_store
from tasks.store.var import Var


def import_results(
    folder: Path, device: str | None, precision: str | None, var: Path, bundles: str | None
) -> tuple[list[str], list[str]]:
    """Publish bundles; return lines that describe the outcome, and a sentence for each file that was left out.

    Raises InputError, also if every result was left out, or BundleError.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; pass a results folder of the kit or its checkout")
    known = next((each for each in RECIPES if each == precision), None)
    if precision and known is None:
        raise InputError(f"--precision {precision}: unknown precision; use one of {', '.join(RECIPES)}")
    if device is not None:
        _check_device(device)
    configs, unread = read_configs(folder)
    results, unknown = find_kit_results(folder, configs, known)
    if not results:
        nothing = f"{folder}: contains no results of the kit (*_t<threads>.etdump or *_xnntrace.log)"
        raise InputError([*unknown, *unread, nothing][0])
    store = open_store(bundles, Var(var))
    new, refused = import_kit(results, folder, store, device=device)
    present = len(results) - len(new) - len(refused)
    lines = [f"{len(new)} bundles written to {store.location} ({_ends(new)}), {present} already there"]
    lines += [f"{each.imported.files[0]}: {each.reason}" for each in new if each.imported and each.reason]
    return [*lines, "load them with: etfarm warehouse load"], [*unread, *unknown, *refused]


def _check_device(device: str) -> None:
    try:
        check_name(device, "device")
    except ValueError as error:
        raise InputError(f"--device {device}: {error}; rename it") from None


def _ends(records: list[SessionRecord]) -> str:
    counts = Counter(record.status for record in records)
    return ", ".join(f"{count} {status}" for status, count in counts.items()) or "nothing new"
