#!/bin/sh
# Arguments: MACHINE_FOLDER TOKEN COLLECTED
# Remove the folders COLLECTED, one in each line, and release the lease; do nothing if it is not ours.
# needs: lease_common

start_lease "$1" "$2"
for name in lease-*/"$token".*; do
    [ -f "$name" ] || continue
    [ -z "$3" ] || remove_lines "$3"
    rm -rf "${name%/*}"
done
