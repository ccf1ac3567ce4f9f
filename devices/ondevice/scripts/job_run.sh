#!/bin/sh
# Arguments: FOLDER ROOT DEADLINE JOB_SCRIPT WATCHDOG_SCRIPT COMMAND [ARGUMENT ...]
# Start the job of FOLDER unless it was started before, and wait for its end: as its parent, without load during the
# measurement, or by polling if another call started it.
# Prints `ended STATUS BEGIN END [late]`, `rebooted`, `gone` or `unstarted`.
# needs: job_common

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
