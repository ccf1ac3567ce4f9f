#!/bin/sh
# Arguments: MACHINE_FOLDER TOKEN TTL_S HOLDER DEAD_NAME
# Prints `won`, `won over HOLDER`, `held NAME HOLDER` or `held`. An atomic mkdir of the next number decides between callers;
# the winner withdraws if another lease turns out to be valid, for example because it was renewed at the same moment.
# needs: lease_common

start_lease "$1" "$2"
ttl=$3; who=$4; dead=$5; over=
newest
if valid "$newest" "$dead"; then
    if [ -f "$name" ]; then printf 'held %s %s\n' "$name" "$(head -c 4096 "$name")"; else echo held; fi
    exit 0
fi
[ ! -f "$name" ] || over="over $(head -c 4096 "$name")"
mine=lease-$((newest + 1))
mkdir "$mine" 2>/dev/null || { echo held; exit 0; }
if ! printf '%s\n' "$who" >"$mine/new" || ! mv "$mine/new" "$mine/$token.$boot.$((now + ttl))"; then
    rm -rf "$mine"; exit 1
fi
if rival "$mine" 0 "$dead"; then rm -rf "$mine"; echo held; exit 0; fi
for entry in lease-*; do [ "$entry" = "$mine" ] || rm -rf "$entry" 2>/dev/null; done
echo "won $over"
