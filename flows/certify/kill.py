"""The check that kills the farm, and then the runner, in the middle of a session."""

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from devices.errors import DeviceError, FarmError
from devices.ondevice.diagnostics import read_leftovers
from devices.shell import call, make_folder
from flows.certify.sweeps import last_line, records_of, started
from tasks.judge.certify.subject import Finding, Subject

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
_NAME, _SETTINGS = "certify-kill", {"models": ["linear"], "sessions": 2}
_LONGEST_S = 300.0
_PAUSE_S = 0.2


def kill_and_reattach(subject: Subject) -> Finding:
    """Kill the farm during a session, start it again, then kill the runner during the next session."""
    device, folder = subject.device, f"{subject.device.root}/kill"
    launcher = ["sh", "-c", _HOLDING, "sh", folder]
    make_folder(device, folder)
    # The first start is that of the session that is always discarded.
    call(device, ["touch", f"{folder}/hold-2", f"{folder}/hold-3"])
    with started(subject, _NAME, _SETTINGS, launcher=launcher) as (_, farm):
        _until_held(subject, farm, f"{folder}/held-2")
        farm.kill()
    call(device, ["rm", f"{folder}/hold-2"])
    _until(lambda: read_leftovers(device).jobs == 0, "the job did not end on the device after the farm was killed")
    with started(subject, _NAME, _SETTINGS, again=False, launcher=launcher) as (sweep_id, farm):
        _until_held(subject, farm, f"{folder}/held-3")
        call(device, ["kill", "-KILL", call(device, ["cat", f"{folder}/held-3"]).strip()])
        farm.wait()
    starts = len(call(device, ["cat", f"{folder}/starts"]).split())
    call(device, ["rm", "-rf", folder])
    records = records_of(subject, sweep_id)
    attempts = [each.status for each in records if each.index == 0]
    if attempts != ["succeeded"] or starts != 3:
        counted = f"{attempts.count('succeeded')} times in {len(attempts)} attempts and {starts - 2} starts"
        raise FarmError(f"the session whose farm was killed counts {counted} of its runner, instead of once each")
    (killed,) = (each for each in records if each.index == 1)
    if killed.status != "failed" or killed.signal != 9:
        raise FarmError(f"the session whose runner was killed ended as {killed.status}: {killed.reason}")
    left = read_leftovers(device)
    if left.jobs or left.sessions:
        raise FarmError(f"{left.jobs} jobs and {left.sessions} session folders are left after the runner was killed")
    text = "1 result of 1 start of the runner after kill -9 of the farm"
    return Finding("passed", f"{text}; the session of a killed runner {killed.status}: {killed.reason}")


def _until_held(subject: Subject, farm: "subprocess.Popen[bytes]", path: str) -> None:
    """Wait until the runner is held, as a file on the device shows; raises FarmError if the farm ends before."""

    def is_there() -> bool:
        if farm.poll() is not None:
            raise FarmError(f"the sweep ended before its session ran: {last_line(subject, _NAME)}")
        return subject.device.run(["test", "-e", path], deadline_s=30).exit_code == 0

    _until(is_there, f"no session ran within {_LONGEST_S:g} s")


def _until(condition: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + _LONGEST_S
    while time.monotonic() < end:
        with suppress(DeviceError):
            if condition():
                return
        time.sleep(_PAUSE_S)
    raise FarmError(otherwise)
