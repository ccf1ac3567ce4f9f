#!/bin/sh
# Arguments: ROOT IDLE_MINUTES
# Print `KILOBYTES [idle]:PATH` for each entry of the store, least recently used first.

cd "$1" 2>/dev/null || exit 0
# shellcheck disable=SC2045 # the order of use is needed, and the names are hashes
for entry in $(ls -1dtr blobs/* trees/* incoming/* 2>/dev/null); do
    kilobytes=$(du -sk "$entry" 2>/dev/null) || continue
    idle=$(find "$entry" -maxdepth 0 -mmin "+$2" 2>/dev/null)
    echo "${kilobytes%%[!0-9]*} ${idle:+idle}:$entry"
done
