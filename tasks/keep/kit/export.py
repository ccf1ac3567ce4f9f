"""Write the sessions of a sweep as the CSV files of the profiling kit.

The columns are the kit's, the figures are not always: warm-up runs are left out as the kit's are in another process;
`pct_total` is the share of `Method::execute` and not of a sum that counts calls and their content; `portable` is only
what portable operators ran, and calls have no backend.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tasks.bundle.cell import backend_of
from tasks.bundle.record import SessionRecord
from tasks.etdump.event_kind import EventKind
from tasks.etdump.reader import Etdump, read_etdump
from tasks.etdump.xnntrace import parse_kernel, read_xnntrace
from tasks.store.files import write_complete
from tasks.store.folder import read_bundle

TIMELINE = (
    "model_id", "name", "type", "delegate_backend", "start_us", "end_us", "duration_ms", "pct_total", "node_id",
    "run_index", "block",
)  # fmt: skip
STATS = ("model_id", "name", "type", "delegate_backend", "count", "total_ms", "avg_ms", "pct_total")
KERNELS = (
    "model_id", "kernel_name", "category", "count", "dtype", "xnn_op", "variant", "ukernel_shape", "arch_chain",
    "has_sme", "has_sme2",
)  # fmt: skip
_LOGS = ("stderr.txt", "stdout.txt", "logcat.txt")
_PROFILE = "kernel_profile.json"
Row = tuple[object, ...]


def export_bundle(bundle: Path, output: Path) -> list[Path]:
    """Write the CSV files of a session into the folder `output`; none if it did not succeed.

    A timing session has `*_exec_all_runs_timeline.csv` and `*_exec_ops_stats.csv`. A trace or profile has
    `*_kernels.csv`, where `count` is the number of selections or of samples. Raises BundleError or EtdumpError.
    """
    record = read_bundle(bundle)
    if record.status != "succeeded":
        return []
    stem = _stem(record)
    if record.mode != "timing":
        return [_write(output / f"{stem}_kernels.csv", KERNELS, _kernels(stem, record, bundle))]
    dump = read_etdump(bundle / "model.etdump")
    measured = np.flatnonzero(dump.execution >= record.warmup_executions)
    node = _nodes(dump, measured)
    backend = {EventKind.DELEGATED: backend_of(record.model.precision).upper(), EventKind.PORTABLE: "portable"}
    backends = [backend.get(EventKind(kind), "") for kind in dump.kind[measured].tolist()]
    return [
        _write(
            output / f"{stem}_exec_all_runs_timeline.csv", TIMELINE, _timeline(stem, dump, measured, node, backends)
        ),
        _write(output / f"{stem}_exec_ops_stats.csv", STATS, _stats(stem, dump, measured, node, backends)),
    ]


def _stem(record: SessionRecord) -> str:
    """Return `<model>_<experiment>_t<threads>` as the kit names its files; the session keeps it unique."""
    experiment = f"{record.device.name}_{record.variant}_{record.session_id}"
    if record.mode != "timing":
        experiment += f"_{record.mode}"
    stem = f"{record.model.name}_{record.model.precision}_{experiment}_t{record.threads}"
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in stem)


def _nodes(dump: Etdump, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    """Return a number for each event that is equal for the same event of all runs."""
    numbers: dict[tuple[int, int, int, int], int] = {}
    seen: dict[tuple[int, int, int, int], int] = {}
    nodes = []
    for row in rows.tolist():
        run = int(dump.execution[row])
        what = (run, int(dump.chain_index[row]), int(dump.instruction_id[row]), int(dump.name_id[row]))
        repeat = seen[what] = seen.get(what, -1) + 1
        nodes.append(numbers.setdefault((*what[1:], repeat), len(numbers)))
    return nodes


def _timeline(
    stem: str,
    dump: Etdump,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    nodes: Sequence[int],
    backends: Sequence[str],
) -> Iterator[Row]:
    for row, node, backend in zip(rows.tolist(), nodes, backends, strict=True):
        name, run, dur = dump.names[dump.name_id[row]], int(dump.execution[row]), int(dump.dur_ns[row])
        times = (_us(int(dump.start_ns[row])), _us(int(dump.end_ns[row])), _ms(dur))
        share = f"{100 * dur / (int(dump.execute_ns[run]) or 1):.6f}"
        yield (stem, name, _type(name), backend, *times, share, node, run, "Execute")


def _stats(
    stem: str,
    dump: Etdump,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    nodes: Sequence[int],
    backends: Sequence[str],
) -> Iterator[Row]:
    """Yield a row for each type of event, the longest first: its number per run and its time per run."""
    runs = len(np.unique(dump.execution[rows])) or 1
    events: dict[tuple[str, str], set[int]] = {}
    total_ns: dict[tuple[str, str], int] = {}
    for row, node, backend in zip(rows.tolist(), nodes, backends, strict=True):
        key = (_type(dump.names[dump.name_id[row]]), backend)
        events.setdefault(key, set()).add(node)
        total_ns[key] = total_ns.get(key, 0) + int(dump.dur_ns[row])
    execute_ns = float(dump.dur_ns[rows][dump.kind[rows] == EventKind.METHOD].sum()) or 1.0
    for key in sorted(total_ns, key=lambda each: -total_ns[each]):
        count, per_run_ns = len(events[key]), total_ns[key] / runs
        yield (stem, key[0], *key, count, _ms(per_run_ns), _ms(per_run_ns / count), 100 * total_ns[key] / execute_ns)


def _kernels(stem: str, record: SessionRecord, bundle: Path) -> Iterator[Row]:
    for category, name, count in sorted(_counted(record, bundle), key=lambda each: -each[2]):
        kernel = parse_kernel(name)
        before, _, after = name.partition("__")
        yield (
            stem,
            name,
            category or (kernel.operation if kernel else ""),
            count,
            kernel.data_types[0] if kernel and kernel.data_types else "",
            kernel.operation if kernel else "",
            "minmax" if "_minmax_" in before else "",
            (kernel.tile if kernel else None) or "",
            after or (kernel.isa if kernel else None) or "",
            int(bool(kernel and kernel.isa_family in ("SME", "SME2"))),
            int(bool(kernel and kernel.is_sme2)),
        )


def _counted(record: SessionRecord, bundle: Path) -> Iterator[tuple[str, str, int]]:
    """Yield (category, kernel, count): selections of a trace, samples of a profile."""
    if record.mode == "trace":
        for log in (bundle / name for name in _LOGS if name in record.files):
            yield from ((each.kind, each.kernel.name, each.count) for each in read_xnntrace(log).selected)
    elif _PROFILE in record.files:
        profile = json.loads((bundle / _PROFILE).read_bytes())
        yield from (("", each["name"], int(each["samples"])) for each in profile["kernels"] if each.get("name"))


def _write(path: Path, columns: Sequence[str], rows: Iterator[Row]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_complete(path, text.getvalue().encode())
    return path


def _type(name: str) -> str:
    return name.rsplit(" #", 1)[0]


def _us(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:.6f}"
