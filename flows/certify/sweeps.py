"""The sweeps of a certification: ordinary ones, each `etfarm sweep` in another process, which a check may kill."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from devices.untrusted import excerpt
from tasks.bundle.record import SessionRecord
from tasks.judge.certify.subject import Subject
from tasks.measure.night import sweep_night
from tasks.measure.plan import FIRST_SESSION
from tasks.store.files import write_complete
from tasks.store.store import open_store

# Settings of the user that would send a certification's results, or messages about its sweeps, elsewhere.
_NOT_INHERITED = {f"ETFARM_{name}" for name in ("VAR", "WAREHOUSE", "BUNDLES", "NOTIFY")}
_NOT_INHERITED |= {"PREFECT_API_URL", "PREFECT_HOME"}
_SETTINGS = {"variants": ["sme2_off"], "modes": ["timing"], "sessions": 1, "deadline_s": 120, "settle_s": 60}
# Many, so that the profile samples even kernels of a few microseconds; in an emulator few take long enough.
_EXECUTIONS = {"executions": 4000, "warmup_executions": 100}
_EMULATED_EXECUTIONS = {"executions": 6, "warmup_executions": 1}


@contextlib.contextmanager
def started(
    subject: Subject, name: str, settings: Mapping[str, Any], *, again: bool = True, launcher: Sequence[str] = ()
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Start a sweep on the device alone; yield its id and the process, which ends with the block.

    With `again` everything is measured again, otherwise the newest sweep of that name is resumed. The process prints
    to `logs/<name>.log` in the results.
    """
    executions = _EMULATED_EXECUTIONS if subject.spec.emulated else _EXECUTIONS
    device = subject.spec.model_dump(mode="json", exclude_unset=True)
    device["launcher"] = [*launcher, *subject.spec.launcher]
    file = _write(subject, name, {"name": name, "lease_wait_s": 60, **_SETTINGS, **executions, **settings})
    inventory = _write(subject, f"{name}-inventory", {"devices": [device]})
    known = open_store(None, subject.places).sweep_ids()
    sweep_id = sweep_night(name, subject.night, known, again=again).sweep_id
    command = [sys.executable, "-m", "flows.cli.main", "sweep", str(file), "--inventory", str(inventory)]
    command += ["--var", str(subject.places.root), "--night", subject.night.isoformat(), "--fail-on", "never"]
    if again:
        command.append("--again")
    environment = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
    log = _log(subject, name)
    log.parent.mkdir(exist_ok=True)
    with log.open("wb" if again else "ab") as stream:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        with process:
            try:
                yield sweep_id, process
            finally:
                if process.poll() is None:
                    process.terminate()


def run_to_end(subject: Subject, name: str, settings: Mapping[str, Any]) -> str:
    """Run a sweep to its end and return its id; raises FarmError with the reason of its first bad session."""
    with started(subject, name, settings) as (sweep_id, process):
        process.wait()
    if bad := [each for each in records_of(subject, sweep_id) if each.status != "succeeded"]:
        first, cell = bad[0], f"{bad[0].model.name} {bad[0].variant} {bad[0].mode}"
        raise FarmError(f"{len(bad)} sessions did not succeed, the first: {cell}: {first.status}: {first.reason}")
    if process.returncode:
        raise FarmError(f"the sweep ended with {process.returncode}: {last_line(subject, name)}")
    return sweep_id


def records_of(subject: Subject, sweep_id: str) -> list[SessionRecord]:
    """Return the records of a sweep, without the first session of the device, which is always discarded."""
    records = open_store(None, subject.places).records(sweep_id, skip_damaged=True)
    return sorted((each for each in records if each.reason_code != FIRST_SESSION), key=lambda each: each.ended_at)


def last_line(subject: Subject, name: str) -> str:
    """Return the last line that a sweep printed."""
    text = _log(subject, name).read_text(encoding="utf-8", errors="replace")
    return excerpt((text.strip().splitlines() or ["it printed nothing"])[-1])


def _log(subject: Subject, name: str) -> Path:
    return subject.places.root / "logs" / f"{name}.log"


def _write(subject: Subject, name: str, content: dict[str, Any]) -> Path:
    path = subject.places.root / f"{name}.yaml"
    write_complete(path, json.dumps(content, indent=1).encode())  # JSON is YAML
    return path
