#!/bin/sh
# Arguments: MACHINE_FOLDER TOKEN TTL_S HOLDER DEAD_NAMES PRIORITY WAITS
# Prints `won AHEAD [NAME HOLDER]` with the lease that was taken over, or `held AHEAD [NAME HOLDER]`; AHEAD waiters come
# before this caller. One that WAITS (not "") stands in line with a file that is refreshed by each call. A caller without
# such a file comes after all of its priority.
# An atomic mkdir of the next number decides between callers. Whoever made it looks once more, after its lease can be seen,
# and withdraws if another one is valid: it was renewed, or made under another number, while this script was paused.
# needs: lease_common

start_lease "$1" "$2" || exit
umask 022
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
rival "$dead" && refuse
if [ "$ahead" -gt 0 ]; then
    [ -z "$dead" ] || remove_others "" "$dead" # those ahead may be unable to see that its process has ended
    name=; refuse
fi
newest; valid "$newest"; over=$name
folder=lease-$((newest + 1)); mine=$folder/$token.$boot.$((now + ttl)); name=
mkdir "$folder" 2>/dev/null || refuse
if ! printf '%s\n' "$who" >"$mine"; then
    [ -d "$folder" ] || refuse # it was removed as one that its process had left
    remove "$mine"; exit 1
fi
if rival "$dead" || [ ! -f "$mine" ]; then remove "$mine"; refuse; fi
name=$over
if [ -f "$name" ]; then with_record won; else echo "won $ahead"; fi
remove_others "$folder" "$dead"
[ -z "$place" ] || rm -f "$place"
