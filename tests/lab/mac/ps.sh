#!/bin/sh
# Stand-in of the virtual lab for a Mac's ps, which has no /proc: -o lstart= -p PID (a text that differs for a later
# process with the same id).
if [ "$1 $2 $3" != '-o lstart= -p' ]; then echo "ps: the stand-in supports -o lstart= -p PID, not $*" >&2; exit 1; fi
read -r line 2>/dev/null <"/usr/libexec/etfarm-lab/proc/$4/stat" || exit 1
# shellcheck disable=SC2086 # one word a field
set -- ${line##*) }
echo "tick ${20}"
