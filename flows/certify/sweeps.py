"""The sweeps of a certification: ordinary ones, each `etfarm sweep` in another process, which one check kills."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from devices import retry
from devices.errors import DeviceError, FarmError
from devices.ondevice.diagnostics import read_leftovers
from devices.settings import PREFIX
from devices.shell import call
from devices.untrusted import excerpt
from tasks.bundle.record import SessionRecord
from tasks.bundle.variant_word import variant_word
from tasks.judge.certify.subject import Finding, Subject
from tasks.measure.plan import FIRST_SESSION
from tasks.measure.sweep_night import sweep_night
from tasks.store.files import write_complete

# Settings of the user that would send a certification's results, or messages about its sweeps, elsewhere.
_NOT_INHERITED = {f"{PREFIX}{name}" for name in ("DATA_DIR", "WAREHOUSE", "BUNDLES", "NOTIFY")}
_NOT_INHERITED |= {"PREFECT_API_URL", "PREFECT_HOME"}
_SETTINGS = {"variants": ["sme2_off"], "modes": ["timing"], "sessions": 1, "deadline_s": 120, "settle_s": 60}
# Many, so that the profile samples even kernels of a few microseconds; in an emulator few take long enough.
_EXECUTIONS = {"executions": 4000, "warmup_executions": 100}
_EMULATED_EXECUTIONS = {"executions": 6, "warmup_executions": 1}
# Starts the runner; the third and later words are its command. At the starts whose number has a file `hold-N`, it
# writes its process id to `held-N` and waits until `hold-N` is gone; the runner then has the same process id.
_HOLDING = """
folder=$1; shift
case "$*" in *--etdump_path=*) ;; *) exec "$@" ;; esac
echo start >>"$folder/starts"
number=$(($(wc -l <"$folder/starts")))
if [ -e "$folder/hold-$number" ]; then
    echo $$ >"$folder/held.part" && mv "$folder/held.part" "$folder/held-$number"
    while [ -e "$folder/hold-$number" ]; do sleep 0.1; done
fi
exec "$@"
"""
_KILLED, _KILLED_SETTINGS = "certify-kill", {"models": ["linear"], "sessions": 2}
_TIMEOUT_S = 300.0
_PAUSE_S = 0.2


def run_to_end(subject: Subject, name: str, settings: Mapping[str, Any]) -> str:
    """Run a sweep to its end and return its id; raises FarmError with the reason of its first bad session."""
    with _running_sweep(subject, name, settings) as (sweep_id, process):
        process.wait()
    if bad := [each for each in _records(subject, sweep_id) if each.status != "succeeded"]:
        first, cell = bad[0], f"{bad[0].model.name} {variant_word(bad[0].variant)} {bad[0].mode}"
        raise FarmError(f"{len(bad)} sessions did not succeed, the first: {cell}: {first.status}: {first.reason}")
    if process.returncode:
        raise FarmError(f"the sweep ended with {process.returncode}: {_last_line(subject, name)}")
    return sweep_id


def kill_and_reattach(subject: Subject) -> Finding:
    """Kill the farm in a session, start it again, kill the next session's runner: one result each, nothing left."""
    device, folder = subject.device, f"{subject.device.root}/kill"
    launcher = ["sh", "-c", _HOLDING, "sh", folder]
    call(device, ["mkdir", "-p", "--", folder])
    # The first start is that of the session that is always discarded.
    call(device, ["touch", f"{folder}/hold-2", f"{folder}/hold-3"])
    with _running_sweep(subject, _KILLED, _KILLED_SETTINGS, launcher=launcher) as (_, farm):
        _wait_until_held(subject, farm, f"{folder}/held-2")
        farm.kill()
    call(device, ["rm", f"{folder}/hold-2"])
    _wait_until(lambda: read_leftovers(device).jobs == 0, "the job did not end on the device after the farm was killed")
    with _running_sweep(subject, _KILLED, _KILLED_SETTINGS, again=False, launcher=launcher) as (sweep_id, farm):
        _wait_until_held(subject, farm, f"{folder}/held-3")
        call(device, ["kill", "-KILL", call(device, ["cat", f"{folder}/held-3"]).strip()])
        farm.wait()
    starts = len(call(device, ["cat", f"{folder}/starts"]).split())
    call(device, ["rm", "-rf", folder])
    records = _records(subject, sweep_id)
    attempts = [each.status for each in records if each.repetition == 0]
    if attempts != ["succeeded"] or starts != 3:
        counted = f"{attempts.count('succeeded')} times in {len(attempts)} attempts and {starts - 2} starts"
        raise FarmError(f"the session whose farm was killed counts {counted} of its runner, instead of once each")
    (killed,) = (each for each in records if each.repetition == 1)
    if killed.status != "failed" or killed.signal != 9:
        raise FarmError(f"the session whose runner was killed ended as {killed.status}: {killed.reason}")
    left = read_leftovers(device)
    if left.jobs or left.sessions:
        raise FarmError(f"{left.jobs} jobs and {left.sessions} session folders are left after the runner was killed")
    text = "1 result of 1 start of the runner after kill -9 of the farm"
    return Finding("passed", f"{text}; the session of a killed runner {killed.status}: {killed.reason}")


@contextlib.contextmanager
def _running_sweep(
    subject: Subject, name: str, settings: Mapping[str, Any], *, again: bool = True, launcher: Sequence[str] = ()
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Start a sweep on this device only; yield its id and the process, which ends with the block.

    With `again` everything is measured again, otherwise the newest sweep of that name is resumed. The process prints
    to `logs/<name>.log` in the results.
    """
    executions = _EMULATED_EXECUTIONS if subject.spec.emulated else _EXECUTIONS
    device = subject.spec.model_dump(mode="json", exclude_unset=True)
    device["launcher"] = [*launcher, *subject.spec.launcher]
    file = _write_yaml(subject, name, {"name": name, "lease_wait_s": 60, **_SETTINGS, **executions, **settings})
    inventory = _write_yaml(subject, f"{name}-inventory", {"devices": [device]})
    sweep_ids = subject.workspace.store.sweep_ids()
    sweep_id = sweep_night(name, subject.night, sweep_ids, again=again).sweep_id
    command = [sys.executable, "-m", "flows.cli.main", "sweep", str(file), "--inventory", str(inventory)]
    command += ["--data-dir", str(subject.workspace.root), "--night", subject.night.isoformat(), "--fail-on", "never"]
    if again:
        command.append("--again")
    environment = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
    log = _log_file(subject, name)
    log.parent.mkdir(exist_ok=True)
    with log.open("wb" if again else "ab") as stream:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)
        with process:
            try:
                yield sweep_id, process
            finally:
                if process.poll() is None:
                    process.terminate()


def _records(subject: Subject, sweep_id: str) -> list[SessionRecord]:
    """Return the records of a sweep in the order in which they ended, without the session that is always discarded."""
    records = subject.workspace.store.records(sweep_id, skip_damaged=True)
    return sorted((each for each in records if each.reason_code != FIRST_SESSION), key=lambda each: each.ended_at)


def _last_line(subject: Subject, name: str) -> str:
    text = _log_file(subject, name).read_text(encoding="utf-8", errors="replace")
    return excerpt((text.strip().splitlines() or ["it printed nothing"])[-1])


def _log_file(subject: Subject, name: str) -> Path:
    return subject.workspace.root / "logs" / f"{name}.log"


def _write_yaml(subject: Subject, name: str, content: dict[str, Any]) -> Path:
    path = subject.workspace.root / f"{name}.yaml"
    write_complete(path, json.dumps(content, indent=1).encode())  # JSON is YAML
    return path


def _wait_until_held(subject: Subject, farm: "subprocess.Popen[bytes]", path: str) -> None:
    """Wait until the runner is held, as a file on the device shows; raises FarmError if the farm ends before."""

    def is_there() -> bool:
        if farm.poll() is not None:
            raise FarmError(f"the sweep ended before its session ran: {_last_line(subject, _KILLED)}")
        return subject.device.run(["test", "-e", path], deadline_s=retry.SCRIPT.timeout_s).exit_code == 0

    _wait_until(is_there, f"no session ran within {_TIMEOUT_S:g} s")


def _wait_until(condition: Callable[[], bool], otherwise: str) -> None:
    """Poll until the condition holds, errors of the device ignored; raises FarmError(otherwise) after 5 minutes."""
    end = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < end:
        with contextlib.suppress(DeviceError):
            if condition():
                return
        time.sleep(_PAUSE_S)
    raise FarmError(otherwise)
