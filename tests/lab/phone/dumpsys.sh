#!/bin/sh
# Stand-in of the virtual lab for Android's dumpsys: replays a text file per service.
report=/system/etc/dumpsys/$1.txt
if [ -r "$report" ]; then cat "$report"; else echo "Can't find service: $1" >&2; fi
