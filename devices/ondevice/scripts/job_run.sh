#!/bin/sh
# Arguments: FOLDER ROOT MACHINE_FOLDER DEADLINE IDENTITY LEASE TTL_S FILES STORED STATES RETRIED COLLECTED
#     JOB_SCRIPT CONDITIONS_SCRIPT COMMAND [ARGUMENT ...]
# Start the job of FOLDER unless it was started before, and wait for its end: as its parent, without load during the
# measurement, or by polling if another call started it. A job starts only if the lease with the token LEASE, "" for
# none, is still ours, and it is extended to TTL_S: a controller may have been stopped for longer than its lease. The
# folders COLLECTED, one in each line, are removed before it starts.
# After job_prepare.sh, STORED is empty. Without it, STORED are the files of the store that the job needs, paths under ROOT
# in a line each: it starts only in a new folder, and if the files have the STATES that they had when they were verified. A
# job that has not ended is attached to only if RETRIED is set: otherwise a farm that was killed left it.
# Prints `unprepared` if they do not, `unleased`, `rebooted`, `gone`, `unstarted`, `foreign` (a job of another identity), or
#     ended STATUS BEGIN END CLOCK_AT_END CLOCK_NOW WAITING [late]   with the highest priority that waits, or -
#     SIZE NAME, missing NAME or apart NAME, for each of FILES (names without blanks, separated by blanks)
#     %content  followed by the files that have a SIZE, without separators: regular ones, at most 512 KB together
#     %before   followed by the conditions before the command
#     %after    followed by the conditions after it
# The two clock values are in seconds of one clock: the device's date if the device was restarted since.
# needs: lease_common

folder=$1; root=$2; machine=$3; deadline=$4; identity=$5; lease=$6; ttl=$7; files=$8; shift 8
stored=$1; states=$2; retried=$3; collected=$4; job_script=$5; conditions_script=$6; shift 6
current_states() (
    IFS='
'
    set -f
    # shellcheck disable=SC2086 # one path for each line
    cd "$root" && state $stored
)
if [ -n "$stored" ]; then
    is_ready=
    if [ -e "$folder" ]; then
        if [ -e "$folder/job/identity" ] && read -r found <"$folder/job/identity" && [ "$found" = "$identity" ]; then
            is_ready=$retried; [ ! -e "$folder/job/rc" ] || is_ready=1
        fi
    elif [ "$(current_states)" = "$states" ]; then is_ready=1; fi
    [ -n "$is_ready" ] || { echo unprepared; exit 0; }
fi
LC_ALL=C mkdir -p "$folder/job" && cd "$folder" || exit 1
set -C # of several calls, one creates the file
if { echo "$identity" >job/identity; } 2>/dev/null; then
    if [ -n "$lease" ]; then
        start_lease "$machine" "$lease" || { rm -rf "$folder/job"; exit 1; }
        keep_lease "$ttl" ${stored:+60} # for the next short sessions, too
        [ -n "$kept" ] || { rm -rf "$folder/job"; echo unleased; exit 0; }
        cd "$folder" || exit 1
    fi
    set +C
    [ -z "$collected" ] || remove_lines "$collected"
    own_session sh -c "$job_script" sh "$folder" "$root" "$machine" "$deadline" "$conditions_script" "$@" >/dev/null 2>&1 &
    wait $!
fi
set +C
list_files() {
    regular=; present=; left=524288
    for name in $files; do
        if [ -f "$name" ] && [ ! -L "$name" ]; then regular="$regular $name"
        elif [ -e "$name" ] || [ -L "$name" ]; then echo "apart $name"
        else echo "missing $name"; fi
    done
    [ -n "$regular" ] || return 0
    # shellcheck disable=SC2046,SC2086 # words without blanks
    set -- $(wc -c $regular)
    for name in $regular; do
        [ "$2" = "$name" ] || break
        if [ "$1" -gt "$left" ]; then echo "apart $name"
        else left=$((left - $1)); present="$present $name"; echo "$1 $name"; fi
        shift 2
    done
}
boot; looks=0; misses=0
while [ ! -e job/rc ]; do
    token=; [ ! -e job/pid ] || read -r pid there _ _ token <job/pid
    if [ -z "$token" ]; then
        [ "$misses" -lt 50 ] || { echo unstarted; exit 0; }
        misses=$((misses + 1))
    else
        [ "$boot" = "$there" ] || { echo rebooted; exit 0; }
        started "$pid"
        if [ "$started" != "$token" ]; then
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
read -r found <job/identity
[ "$found" = "$identity" ] || { echo foreign; exit 0; }
late=; [ ! -e job/late ] || late=late
read -r status begin end _ <job/rc
read -r _ there _ <job/pid
if [ "$boot" = "$there" ]; then now; clock="$end $now"; else clock="$(date -r job/rc +%s) $(date +%s)"; fi
highest=
if start_lease "$machine" ""; then look_at_waiters 0 0 ""; fi
cd "$folder" || exit 1
echo "ended $status $begin $end $clock ${highest:--} $late"
list_files
echo %content
# shellcheck disable=SC2086 # names without blanks
exec cat $present job/before job/after
