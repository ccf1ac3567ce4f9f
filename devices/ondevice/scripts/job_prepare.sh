#!/bin/sh
# Arguments: FOLDER IDENTITY MACHINE_FOLDER LEASE TTL_S ROOT CONDITIONS_SCRIPT PLACES FRESH_MINUTES FILE ...
# What precedes a job. Print `ended` or `unleased` (see match_job; the lease is extended to TTL_S), or
#     %fresh      followed by the PLACES that were marked as used within FRESH_MINUTES
#     %state      followed by the state of each FILE
#     %verified   followed by the states and hashes of the files when they were verified, place by place
#     %conditions followed by the conditions of the device
# PLACES are paths under ROOT without blanks, separated by blanks; each FILE is a path under ROOT.
# needs: job_match

answer=$(match_job "$1" "$2" "$3" "$4" "$5") || exit 1
[ -z "$answer" ] || { echo "$answer"; exit 0; }
root=$6; conditions_script=$7; places=$8; fresh=$9; shift 9
guards=; for place in $places; do guards="$guards verified/${place##*/}"; done
if cd "$root" 2>/dev/null; then
    # shellcheck disable=SC2086 # paths without blanks
    { echo %fresh; find $places -maxdepth 0 -mmin "-$fresh"; echo %state; state "$@"; echo %verified; cat $guards; } 2>/dev/null
fi
echo %conditions
sh -c "$conditions_script" sh "$root"
