#!/bin/sh
# Arguments: MACHINE_FOLDER TOKEN TTL_S HOLDER DEAD_NAME PRIORITY WAITS
# Prints `won AHEAD [NAME HOLDER]` with the lease that was taken over, or `held AHEAD [NAME HOLDER]`; AHEAD waiters come
# before this caller. One that WAITS (not "") stands in line with a file that is refreshed by each call. A caller without
# such a file comes after all of its priority.
# An atomic mkdir of the next number decides between callers; the winner withdraws if another lease turns out to be valid,
# for example because it was renewed at the same moment.
# needs: lease_common

start_lease "$1" "$2"
ttl=$3; who=$4; dead=$5; priority=$6; waits=$7
for place in wait-*."$token".*; do [ ! -f "$place" ] || break; done
since=$now
if waiter "$place"; then since=$came; else place=; fi
look_at_waiters "$priority" "$since" "$place"
with_record() { printf '%s %s %s %s\n' "$1" "$ahead" "$name" "$(head -c 4096 "$name")"; }
refuse() {
    stood=$place; place=wait-$priority.$since.$token.$boot.$((now + WAITS_S))
    if [ -z "$waits" ]; then [ -z "$stood" ] || rm -f "$stood"
    else { [ -n "$stood" ] && mv "$stood" "$place"; } || printf '%s\n' "$who" >"$place"; fi 2>/dev/null
    if [ -f "$name" ]; then with_record held; else echo "held $ahead"; fi
    exit 0
}
newest
valid "$newest" "$dead" && refuse
if [ "$ahead" -gt 0 ]; then
    [ "$name" != "$dead" ] || rm -rf "${name%/*}" 2>/dev/null # those ahead may not know that its process has ended
    name=; refuse
fi
over=$name; name=
mine=lease-$((newest + 1))
mkdir "$mine" 2>/dev/null || refuse
made=
printf '%s\n' "$who" >"$mine/new" && mv "$mine/new" "$mine/$token.$boot.$((now + ttl))" && made=1
# One that won meanwhile removes all other leases, ours too.
if rival "$mine" 0 "$dead" || [ ! -d "$mine" ]; then rm -rf "$mine"; refuse; fi
if [ -z "$made" ]; then rm -rf "$mine"; exit 1; fi
name=$over
if [ -f "$name" ]; then with_record won; else echo "won $ahead"; fi
for entry in lease-*; do [ "$entry" = "$mine" ] || rm -rf "$entry" 2>/dev/null; done
[ -z "$place" ] || rm -f "$place"
