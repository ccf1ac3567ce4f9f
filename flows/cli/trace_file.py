"""The runs of one session as a trace for Perfetto."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devices.errors import InputError
from tasks.bundle.names import ETDUMP, RECORD
from tasks.bundle.robust_statistics import interquartile_indices
from tasks.etdump.reader import Etdump, read_etdump
from tasks.etdump.trace import as_chrome_json, slices_of
from tasks.rows.sources import event_sources, read_sources
from tasks.store.bundle_store import BundleStore
from tasks.store.files import write_complete
from tasks.store.folder import read_bundle, record_beside


@dataclass(frozen=True)
class _Source:
    """An ETDump to trace; `about` are facts of its session, `sources` those of its operators by event."""

    title: str
    warmup_runs: int
    about: dict[str, object]
    dump: Etdump
    sources: Mapping[int, Mapping[str, str]] = field(default_factory=dict)


def write_trace(session: str, run: str | None, output: Path, bundles: BundleStore) -> str:
    """Write the trace of one run or of all runs; return a line that names them.

    `run` is an index as in the view run_latency, `all`, or None for the measured run in the middle by duration. Raises
    InputError, BundleError or EtdumpError.
    """
    source = _source(session, bundles)
    executions = source.dump.executions
    if not executions:
        raise InputError(f"{session}: the ETDump contains 0 complete runs, so there is nothing to trace; measure again")
    runs, which = _runs(run, source.dump, min(source.warmup_runs, executions - 1))
    text = as_chrome_json(source.title, slices_of(source.dump, runs, source.sources), {**source.about, "runs": which})
    write_complete(output, text.encode())
    return f"{output}: {which}; open it at https://ui.perfetto.dev"


def etdump_of(session: str, bundles: BundleStore) -> Path:
    """Return the ETDump that a path or the id of a session names; raises InputError or BundleError if there is none."""
    path = Path(session)
    if path.is_file() and path.name != RECORD:
        return path
    return _bundle(session, bundles) / ETDUMP


def _runs(run: str | None, dump: Etdump, warmup_runs: int) -> tuple[list[int], str]:
    executions = dump.executions
    if run == "all":
        return list(range(executions)), f"all {executions} runs, {warmup_runs} of them warm-up"
    if run is None:
        typical = interquartile_indices(dump.execute_ns[warmup_runs:])
        middle = warmup_runs + int(typical[len(typical) // 2])
        return [middle], f"run {middle} of 0 to {executions - 1}, the middle one by duration"
    if not run.isdecimal() or int(run) >= executions:
        raise InputError(f"--run {run}: no such run; use a number from 0 to {executions - 1}, or all")
    kind = "a warm-up run" if int(run) < warmup_runs else "measured"
    return [int(run)], f"run {int(run)} of 0 to {executions - 1}, {kind}"


def _source(session: str, bundles: BundleStore) -> _Source:
    path = Path(session)
    if path.is_file() and path.name != RECORD:
        record = record_beside(path)
        dump = read_etdump(path.resolve(), name=str(path), backends=record.model.backends if record else None)
        return _Source(path.name, record.warmup_executions if record else 1, {"etdump": path.name}, dump)
    return _bundle_source(_bundle(session, bundles))


def _bundle(session: str, bundles: BundleStore) -> Path:
    """Return the folder of a bundle by a path or the id of a session; raises InputError if it has no ETDump."""
    path = Path(session)
    folder = path.parent if path.name == RECORD else path
    if not folder.is_dir():
        folder = _find_bundle(session, bundles)
    record = read_bundle(folder)
    if ETDUMP not in record.files:
        raise InputError(f"{folder}: the session has no ETDump ({record.reason or record.status}); trace another one")
    return folder


def _bundle_source(folder: Path) -> _Source:
    record = read_bundle(folder)
    about = {
        "session_id": record.session_id,
        "sweep_id": record.sweep.sweep_id,
        "status": record.status,
        "emulated": record.device.emulated,
        "started_at": record.started_at,
    }
    dump = read_etdump(folder / ETDUMP, backends=record.model.backends)
    # The program of the mode numerics is another one: its instructions are not those of sources.json.
    sources = None if record.mode == "numerics" else read_sources(folder, record)
    what = f"{record.model.name} {record.model.precision} {record.variant} t{record.threads} on {record.device.name}"
    return _Source(what, record.warmup_executions, about, dump, event_sources(sources, dump) if sources else {})


def _find_bundle(session_id: str, bundles: BundleStore) -> Path:
    if folder := bundles.find(session_id):
        return folder
    raise InputError(
        f"{session_id}: neither a session in {bundles.location} nor a bundle or an .etdump file; "
        'list sessions with `etfarm sql "SELECT session_id FROM session_overview"`'
    )
