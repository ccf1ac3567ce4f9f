"""`etfarm compare A.pte B.pte`: measure two files alternately on a device, and print how they compare."""

import hashlib
from collections.abc import Collection, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import typer

from devices.errors import InputError
from flows.cli.formats import as_text
from tasks.bundle.record import SweepNight
from tasks.store.files import sha256_of

_COLUMNS = ["device", "A", "B", "sessions", "A ms", "B ms", "B / A", "low", "high", "answer"]


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
    results = Results(_sweep_of(files, spec.name), open_store(bundles, places), places, warehouse)
    announce(f"compare {files[0]} and {files[1]} on {spec.name}", "comparison", var)
    from flows.comparison.two_files import compare_files
    from flows.server.embedded import exit_at_once

    parameters = {"a": files[0], "b": files[1], "device": spec, "results": results}
    parameters |= {"sessions": sessions, "margin": margin}
    answer, note, is_server_lost = run_with_server(compare_files, parameters, var, "comparison")
    _print(answer, files, spec.name, form)
    if note:
        typer.echo(note, err=True)
    code = 1 if _fails(answer, fail_on, margin) else 0
    if is_server_lost:
        exit_at_once(code)
    return code


def _sweep_of(files: tuple[Path, Path], device: str) -> SweepNight:
    """Return where the sessions belong: the same files on the same device and day are not measured again."""
    content = " ".join([*(sha256_of(file) for file in files), device])
    today = date.today().isoformat()
    sweep_id = f"compare-{today}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
    return SweepNight(sweep_id=sweep_id, name="compare", night=today)


def _print(answer: Any, files: tuple[Path, Path], device: str, form: str) -> None:
    found = answer.result
    times = [each / 1e6 if each is not None else None for each in (found.median_a, found.median_b)]
    row = (device, *map(str, files), found.sessions_b, *times, found.ratio, found.low, found.high, answer.word)
    for piece in as_text(_COLUMNS, [[row]], form):
        typer.echo(piece, nl=False)
    if form != "table":
        return
    typer.echo(f"B against A: {answer.in_words()}")
    if answer.word == "unknown" and found.more_sessions:
        typer.echo(f"about {found.more_sessions} more sessions of each side would settle it")


def _fails(answer: Any, fail_on: Collection[str], margin: float) -> bool:
    found = answer.result
    is_slower = found.answer == "different" and found.low > 1 and found.ratio > 1 + margin
    return ("regression" in fail_on and is_slower) or answer.word in fail_on
