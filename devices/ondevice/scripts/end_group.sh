#!/bin/sh
# End the process group "$1": send TERM, wait half a second, send KILL, wait half a second.

for signal in TERM KILL; do
    kill "-$signal" "-$1" 2>/dev/null
    # shellcheck disable=SC2034 # only counts
    for turn in 1 2 3 4 5; do kill -0 "-$1" 2>/dev/null || exit 0; sleep 0.1; done
done
