"""Long commands on a device that outlive the connection: started once, reattached, never started twice.

A job belongs to its folder on the device. `<folder>/job/` is made by an atomic mkdir; only who made it starts the
job, everybody else attaches. The job leads a session and process group of its own and leaves in that folder

    pid    group id, boot, begin on the device's clock, group id of the watchdog, start token
    late   present if the watchdog ended the job
    rc     exit status, begin, end; written aside, then renamed

The watchdog is a session of its own on the device: it enforces the deadline even when no controller is left.
`<root>/jobs/` holds a copy of `pid` for every job that runs, so that the next holder of the device can end it.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from devices.device import CommandResult, DeadlineExceeded, Device, DeviceError, DeviceLost, DeviceRefused
from devices.shell import DIALECT, command_words, end_of, script

logger = logging.getLogger(__name__)

# How long the device may take, beyond the job's deadline, to end it and say so.
END_GRACE_S = 12.0

# `finish` overwrites what was written when the job began: the command may have filled the disk.
# A group id is safe to kill while its leader is the one that was noted, and also when the leader is gone: the
# kernel gives nobody an id that still names a group.
_COMMON = (
    DIALECT
    + r"""
still_ours() { leader=$(started "$1"); [ -z "$leader" ] || [ "$leader" = "$2" ]; }
finish() { printf '%s\n' "$1" 1<>job/rc.part && mv job/rc.part job/rc; }
"""
)

_WATCHDOG = (
    _COMMON
    + r"""
job=$1; token=$2; deadline=$3; note=$4
sleep "$deadline"
[ ! -e job/rc ] && still_ours "$job" "$token" || exit
: >job/late
kill -TERM "-$job"
for turn in 1 2 3 4 5; do sleep 0.2; [ -e job/rc ] && exit; done
kill -KILL "-$job"
read -r _ _ begin _ <job/pid
finish "137 $begin $(now)"
rm -f "$note"
"""
)

# The trap lets this shell outlive the watchdog's TERM and note how the command took it. The last act ends the rest
# of the group, this shell included: nothing that the command left behind disturbs the next measurement.
_JOB = (
    _COMMON
    + r"""
folder=$1; root=$2; deadline=$3; watchdog_script=$4; shift 4
cd "$folder" && mkdir -p "$root/jobs" || exit 1
trap : TERM
token=$(started $$); note="$root/jobs/$$-$token"
own_session sh -c "$watchdog_script" sh $$ "$token" "$deadline" "$note" &
watchdog=$!
begin=$(now)
printf '%64s\n' '' >job/rc.part && echo "$$ $(boot) $begin $watchdog $token" >job/pid.part &&
    cp job/pid.part "$note" && mv job/pid.part job/pid || { kill -KILL "-$watchdog"; exit 1; }
"$@" >stdout.txt 2>stderr.txt
finish "$? $begin $(now)"
rm -f "$note"
kill -KILL "-$watchdog"
kill -KILL 0
"""
)

# Waits as the parent of a job that it started, which costs nothing while it measures, and by looking now and then
# if it attached. Says `ended STATUS BEGIN END [late]`, `rebooted`, `gone` or `unstarted`.
_RUN = (
    _COMMON
    + r"""
folder=$1; root=$2; deadline=$3; job_script=$4; watchdog_script=$5; shift 5
mkdir -p "$folder" && cd "$folder" || exit 1
if mkdir job 2>/dev/null; then
    own_session sh -c "$job_script" sh "$folder" "$root" "$deadline" "$watchdog_script" "$@" >/dev/null 2>&1 &
    wait $!
fi
here=$(boot); looks=0; misses=0
while [ ! -e job/rc ]; do
    if [ ! -e job/pid ]; then
        [ "$misses" -lt 50 ] || { echo unstarted; exit 0; }
        misses=$((misses + 1))
    else
        read -r pid there _ _ token <job/pid
        [ "$here" = "$there" ] || { echo rebooted; exit 0; }
        if [ "$(started "$pid")" != "$token" ]; then
            if [ "$misses" -ge 10 ]; then
                still_ours "$pid" "$token" && kill -KILL "-$pid" 2>/dev/null
                echo gone; exit 0
            fi
            misses=$((misses + 1))
        fi
    fi
    looks=$((looks + 1))
    if [ "$misses" -gt 0 ] || [ "$looks" -lt 20 ]; then sleep 0.1; else sleep 1; fi
done
late=; [ ! -e job/late ] || late=late
read -r ended <job/rc
echo "ended $ended $late"
"""
)

_KILL_LEFTOVERS = (
    _COMMON
    + r"""
cd "$1/jobs" 2>/dev/null || exit 0
here=$(boot)
for note in *; do
    [ -e "$note" ] || continue
    read -r pid there _ watchdog token <"$note"
    if [ "$here" = "$there" ] && still_ours "$pid" "$token"; then
        [ -z "$leader" ] || kill -KILL "-$watchdog" 2>/dev/null
        kill -KILL "-$pid" 2>/dev/null && echo "$pid"
    fi
    rm -f "$note"
done
"""
)

_LOST = {
    "rebooted": "was restarted while a job ran on it",
    "gone": "has no exit status of a job that somebody killed",
    "unstarted": "never started a job that it accepted; is its disk full?",
}


@dataclass(frozen=True)
class JobResult:
    """How a job ended: either `exit_code` or `signal` is None; `wall_s` is by the device's own clock (10 ms)."""

    exit_code: int | None
    signal: int | None
    deadline_exceeded: bool
    wall_s: float


def run_job(
    device: Device,
    folder: str,
    argv: Sequence[str],
    *,
    deadline_s: float,
    env: Mapping[str, str] | None = None,
    reconnect_s: float = 120.0,
) -> JobResult:
    """Run a command on the device, detached, in `folder` (made if absent; a new one for every attempt).

    Its streams go to `stdout.txt` and `stderr.txt` there. A folder whose job was started before is attached to: the
    command is not run again. The device itself ends the job at `deadline_s`: a result, not an error. A connection
    that breaks is sought again for `reconnect_s`. DeviceLost if it stays away, restarted, or lost track of the job.
    """
    words = ["sh", "-c", _RUN, "sh", folder, device.root, f"{deadline_s:g}", _JOB, _WATCHDOG]
    try:
        result = _attached(device, [*words, *command_words(argv, env, folder)], deadline_s, reconnect_s)
    except DeadlineExceeded:
        cause = f"did not say how the job in {folder} ended, {END_GRACE_S:g} s after its deadline"
        raise DeviceLost(device.name, cause) from None
    if result.exit_code != 0:
        said = result.stderr.decode(errors="replace").strip()
        raise DeviceError(device.name, f"cannot start a job in {folder} ({said or result.signal})")
    return _result(device, folder, result.stdout.decode(errors="replace").split())


def kill_leftovers(device: Device) -> list[int]:
    """End every job that still runs on the device; returns their group ids. For whoever just got its lease."""
    return [int(line) for line in script(device, _KILL_LEFTOVERS, device.root).split()]


def _attached(device: Device, words: list[str], deadline_s: float, reconnect_s: float) -> CommandResult:
    """Run the words, which start a job or attach to it, again after every loss until they come to their end."""
    end = time.monotonic() + deadline_s
    was_lost = False
    while True:
        try:
            return device.run(words, deadline_s=max(end - time.monotonic(), 0.0) + END_GRACE_S)
        except (DeviceLost, DeviceRefused) as error:
            flaps = time.monotonic() > end + reconnect_s
            if flaps or (isinstance(error, DeviceRefused) and not was_lost):
                raise
            was_lost = True
            logger.warning("%s: lost while a job runs (%s), reconnecting", device.name, error.cause)
            device.reconnect(reconnect_s)


def _result(device: Device, folder: str, said: list[str]) -> JobResult:
    if not said or said[0] != "ended" or len(said) < 4:
        cause = _LOST.get(said[0] if said else "", f"said {' '.join(said)!r} about a job")
        raise DeviceLost(device.name, f"{cause} (in {folder})", "run it again in a new folder")
    exit_code, number = end_of(int(said[1]))
    wall_s = max(float(said[3]) - float(said[2]), 0.0)
    return JobResult(exit_code, number, said[-1] == "late", wall_s)
