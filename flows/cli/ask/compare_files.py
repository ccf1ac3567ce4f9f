"""`etfarm compare A.pte B.pte`: measure two files alternately on a device, and print how they compare."""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

from devices.errors import InputError
from flows.cli.formats import as_text
from flows.terminal import show, show_pieces
from tasks.bundle.enough import LEAST_SESSIONS
from tasks.bundle.record import SweepNight
from tasks.measure.night import sweep_night, sweeps_of_night
from tasks.store.files import sha256_of

_COLUMNS = ["device", "A", "B", "A sessions", "B sessions", "A ms", "B ms", "B / A", "low", "high", "answer", "since"]


def are_files(words: tuple[str, str]) -> bool:
    """Return whether two words name .pte files; raises InputError if only one does."""
    named = [word for word in words if word.endswith(".pte")]
    if len(named) == 1:
        raise InputError(f"`{named[0]}` is a .pte file and the other is not; name two .pte files, or none")
    return len(named) == 2


def run_compare_files(
    files: tuple[Path, Path],
    device: str | None,
    inventory: Path,
    sessions: int,
    only: Mapping[str, str | None],
    margin: float,
    fail_on: Collection[str],
    form: str,
    var: Path,
    bundles: str | None,
    warehouse: Path | None,
) -> int:
    """Print how two .pte files compare; return 1 if the answer is what `fail_on` lists, else 0.

    `margin` is a fraction; `only` are options that are not for files. Raises InputError before anything is measured.
    """
    for name, value in only.items():
        if value is not None:
            raise InputError(f"--{name} is not for .pte files; leave it out")
    for file in files:
        if not file.is_file():
            raise InputError(f"{file}: no such file; name a .pte file")
    from flows.cli.prefect_run import announce, run_with_server
    from flows.comparison.lane import Results, choose_device
    from tasks.store.store import open_store
    from tasks.store.var import Var

    spec = choose_device(inventory, device)
    places = Var(var.absolute())
    store = open_store(bundles, places)
    sweep, earlier = _sweeps_of(files, spec.name, store.sweep_ids())
    results = Results(sweep, store, places, warehouse, tuple(earlier))
    announce(f"compare {files[0]} and {files[1]} on {spec.name}", "comparison", var)
    from flows.comparison.two_files import compare_files
    from flows.server.embedded import exit_at_once

    parameters = {"a": files[0], "b": files[1], "device": spec, "results": results}
    parameters |= {"sessions": sessions, "margin": margin}
    answer, note, is_server_lost = run_with_server(compare_files, parameters, var, "comparison")
    _print(answer, files, spec.name, form)
    if note:
        show(note, err=True)
    code = 1 if _fails(answer, fail_on, margin) else 0
    if is_server_lost:
        exit_at_once(code)
    return code


def _sweeps_of(files: tuple[Path, Path], device: str, sweep_ids: Iterable[str]) -> tuple[SweepNight, list[SweepNight]]:
    """Return where the new sessions belong, and the sweeps of the same files on the same device and day."""
    content = " ".join([*(sha256_of(file) for file in files), device])
    name = f"compare-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    today, known = date.today(), list(sweep_ids)
    return sweep_night(name, today, known, again=True), sweeps_of_night(name, today, known)


def _print(answer: Any, files: tuple[Path, Path], device: str, form: str) -> None:
    found = answer.result
    counts = found.sessions_a, found.sessions_b
    times = [each / 1e6 if each is not None else None for each in (found.time_a, found.time_b)]
    figures = (*counts, *times, found.ratio, found.low, found.high, answer.word, answer.since)
    row = (device, *map(str, files), *figures)
    show_pieces(as_text(_COLUMNS, [[row]], form))
    if form != "table":
        return
    show(f"B against A: {answer.in_words()}")
    if answer.calls > 1:
        since = answer.since.isoformat(" ", "minutes")
        show(f"from {counts[0]} sessions of A and {counts[1]} of B, of {answer.calls} calls since {since} UTC")
    if answer.word == "unknown" and found.more_sessions:
        more = max(found.more_sessions, LEAST_SESSIONS)
        lacking = f"{found.more_sessions} more session{'' if found.more_sessions == 1 else 's'}"
        settled = f"about {lacking} of each side would settle it"
        show(f"{settled}; compare again with --sessions {more}, which adds them to these")


def _fails(answer: Any, fail_on: Collection[str], margin: float) -> bool:
    found = answer.result
    is_slower = found.answer == "different" and found.low > 1 and found.ratio > 1 + margin
    return ("regression" in fail_on and is_slower) or answer.word in fail_on
