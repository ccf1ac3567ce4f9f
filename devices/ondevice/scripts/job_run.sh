#!/bin/sh
# Arguments: FOLDER ROOT MACHINE_FOLDER DEADLINE IDENTITY LEASE TTL_S FILES JOB_SCRIPT WATCHDOG_SCRIPT CONDITIONS_SCRIPT
#     COMMAND [ARGUMENT ...]
# Start the job of FOLDER unless it was started before, and wait for its end: as its parent, without load during the
# measurement, or by polling if another call started it. A job starts only if the lease with the token LEASE, "" for
# none, is still ours, and it is extended to TTL_S: a controller may have been stopped for longer than its lease.
# Prints `unleased`, `rebooted`, `gone`, `unstarted`, `foreign` (a job of another identity), or
#     SIZE NAME, missing NAME or apart NAME, for each of FILES (names without blanks, separated by blanks)
#     %content  followed by the files that have a SIZE, without separators: regular ones, at most 512 KB together
#     ended STATUS BEGIN END CLOCK_AT_END CLOCK_NOW [late]
#     %before   followed by the conditions before the command
#     %after    followed by the conditions after it
# Without FILES it begins with `ended`.
# The two clock values are in seconds of one clock: the device's date if the device was restarted since.
# needs: lease_common

folder=$1; root=$2; machine=$3; deadline=$4; identity=$5; lease=$6; ttl=$7; files=$8; shift 8
job_script=$1; watchdog_script=$2; conditions_script=$3; shift 3
mkdir -p "$folder" && cd "$folder" || exit 1
if mkdir job 2>/dev/null; then
    if [ -n "$lease" ]; then
        kept=$(start_lease "$machine" "$lease"; keep_lease "$ttl") || { rmdir job; exit 1; }
        [ -n "$kept" ] || { rmdir job; echo unleased; exit 0; }
    fi
    echo "$identity" >job/identity
    own_session sh -c "$job_script" sh "$folder" "$root" "$machine" "$deadline" "$watchdog_script" \
        "$conditions_script" "$@" >/dev/null 2>&1 &
    wait $!
fi
list_files() {
    present=
    for name in $files; do
        if [ -f "$name" ] && [ ! -L "$name" ]; then present="$present $name"
        elif [ -e "$name" ] || [ -L "$name" ]; then echo "apart $name"
        else echo "missing $name"; fi
    done
    [ -n "$present" ] || return 0
    left=524288
    # shellcheck disable=SC2086 # names without blanks
    wc -c $present | while read -r size name; do
        [ "$name" != total ] || continue
        if [ "$size" -gt "$left" ]; then echo "apart $name"; continue; fi
        left=$((left - size)); echo "$size $name"
    done
}
send_files() {
    listed=$(list_files)
    printf '%s\n%%content\n' "$listed"
    # shellcheck disable=SC2086 # names without blanks
    set -- $listed
    while [ $# -gt 0 ]; do
        case $1 in 0 | apart | missing) ;; *) head -c "$1" "$2" ;; esac
        shift 2
    done
}
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
[ "$(cat job/identity)" = "$identity" ] || { echo foreign; exit 0; }
[ -z "$files" ] || send_files
late=; [ ! -e job/late ] || late=late
read -r status begin end date <job/rc
read -r _ there _ <job/pid
if [ "$here" = "$there" ]; then clock="$end $(now)"; else clock="$date $(date +%s)"; fi
echo "ended $status $begin $end $clock $late"
echo %before; cat job/before
echo %after; cat job/after
