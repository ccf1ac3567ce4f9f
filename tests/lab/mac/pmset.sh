#!/bin/sh
# Stand-in of the virtual lab for macOS's pmset: -g therm and -g batt, replayed from text files.
report=/usr/libexec/etfarm-lab/pmset-$2.txt
if [ "$1" = -g ] && [ -r "$report" ]; then cat "$report"; else echo "pmset: unknown option $*" >&2; exit 1; fi
