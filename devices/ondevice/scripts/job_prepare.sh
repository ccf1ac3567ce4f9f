#!/bin/sh
# Arguments: FOLDER IDENTITY MACHINE_FOLDER LEASE TTL_S ROOT COLLECTED CONDITIONS_SCRIPT PLACES FRESH_MINUTES FILE ...
# What precedes a job. Print `unleased` and remove nothing if the lease with the token LEASE, "" for none, is not ours:
# the jobs may be another holder's. Our lease is extended to TTL_S, and the folders COLLECTED, one in each line, are
# removed. Print `ended` if the job of FOLDER has ended and is of this identity; remove the folder otherwise, and print
#     %fresh      followed by the PLACES that were marked as used within FRESH_MINUTES
#     %state      followed by the state of each FILE
#     %verified   followed by the states and hashes of the files when they were verified, place by place
#     %conditions followed by the conditions of the device
# PLACES are paths under ROOT without blanks, separated by blanks; each FILE is a path under ROOT.
# needs: lease_common

if [ -n "$4" ]; then
    start_lease "$3" "$4" || exit
    keep_lease "$5"
    [ -n "$kept" ] || { echo unleased; exit 0; }
    set +C
fi
[ -z "$7" ] || remove_lines "$7"
found=; [ ! -e "$1/job/rc" ] || read -r found <"$1/job/identity"
if [ -n "$found" ] && [ "$found" = "$2" ]; then echo ended; exit 0; fi
[ ! -e "$1" ] || rm -rf "$1"
root=$6; shift 7
conditions_script=$1; places=$2; fresh=$3; shift 3
guards=; for place in $places; do guards="$guards verified/${place##*/}"; done
if cd "$root" 2>/dev/null; then
    # shellcheck disable=SC2086 # paths without blanks
    { echo %fresh; find $places -maxdepth 0 -mmin "-$fresh"; echo %state; state "$@"; echo %verified; cat $guards; } 2>/dev/null
fi
echo %conditions
set -- "$root"
eval "$conditions_script"
