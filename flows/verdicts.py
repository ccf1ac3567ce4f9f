"""The verdicts on the night of a sweep: on the terminal, in Prefect's UI, and in the sweep's end."""

import logging
from pathlib import Path

from flows.warehouse.publish import ask_warehouse
from flows.warehouse.readable import readable_warehouse
from tasks.results.reader import open_answers
from tasks.results.verdicts import WORSE, FailingVerdict, Verdict, fails

_log = logging.getLogger(__name__)


def verdicts_of(sweep_id: str, var: Path, warehouse: Path | None) -> list[Verdict]:
    """Return the verdicts on the sweep's night, worst first: each on latency, and the changes of other figures."""
    with readable_warehouse(var, warehouse) as readable, open_answers(readable, sweep_id) as answers:
        return answers.rows(Verdict)


def noise_lines(sweep_id: str, var: Path, warehouse: Path | None) -> list[str]:
    """Return a line for each device of the sweep that was busy, and for each whose noise has doubled."""
    busy = [
        f"{device} was busy before its sessions: load {load:.1f} on {cores} cores; measure again when it is idle"
        for device, load, cores in ask_warehouse("busy_devices", var, warehouse, sweep_id=sweep_id)
    ]
    return busy + [
        f"{device}: noise {100 * noise:.1f} %, {change:.1f} times that of {nights} earlier nights; check what else "
        "runs on it, its temperature and its power before you trust small changes"
        for device, noise, change, nights in ask_warehouse("noisy_devices", var, warehouse, sweep_id=sweep_id)
    ]


def log_verdicts(rows: list[Verdict], fail_on: FailingVerdict) -> None:
    """Log each change for the worse: as an error if it makes a sweep Failed, otherwise as a warning."""
    failing = fails(rows, fail_on)
    for row in rows:
        if row.verdict in WORSE:
            _log.log(logging.ERROR if row in failing else logging.WARNING, "%s", row.line)
