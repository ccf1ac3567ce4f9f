#!/bin/sh
# Arguments: PLACE EXECUTABLE NAME ...
# Print the sizes of the named files in PLACE (a file or a folder), or `no` if one is missing; mark PLACE as used.
# One `wc` for all files detects a file truncated by a power loss without reading the contents.

place=$1; executable=$2; shift 2
[ -e "$place" ] || { echo no; exit 0; }
if [ -d "$place" ]; then cd "$place" || exit 1; fi
touch -c "$place"
[ -z "$executable" ] || chmod 755 "$@" 2>/dev/null
wc -c "$@" 2>/dev/null || echo no
