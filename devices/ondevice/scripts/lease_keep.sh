#!/bin/sh
# Arguments: MACHINE_FOLDER TOKEN TTL_S
# Print `kept` and the highest priority that waits, if any, if the lease is ours; extend it to TTL_S, unless that is "".
# needs: lease_common

start_lease "$1" "$2" || exit
keep_lease "$3"
[ -z "$kept" ] || echo "kept $highest"
