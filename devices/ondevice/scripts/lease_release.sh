#!/bin/sh
# Arguments: MACHINE_FOLDER TOKEN COLLECTED KEEP
# Remove the folders COLLECTED, one in each line, and release the lease unless KEEP is set; do nothing if it is not ours.
# needs: lease_common

start_lease "$1" "$2" || exit
tries=3
while [ "$tries" -gt 0 ] && ours; do
    [ -z "$3" ] || remove_lines "$3"
    [ -z "$4" ] || exit 0
    remove "$mine"
    tries=$((tries - 1))
done
