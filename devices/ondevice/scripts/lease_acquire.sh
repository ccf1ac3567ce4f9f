#!/bin/sh
# Arguments: LEASE_FOLDER TOKEN TTL_S HOLDER DEAD_NAME
# Prints `won`, `won over HOLDER`, `held NAME HOLDER` or `held`. If `held` is empty, its holder is between two system calls;
# if it was killed there, the lease is free after a minute. If `held` contains a second name, this caller withdraws.
# needs: lease_common

ttl=$3; who=$4; dead=$5
mine="held/$token.$here.$((now + ttl))"
printf '%s\n' "$who" >"holders/$token" || exit 1
find held -maxdepth 0 -mmin +1 -exec rmdir {} \; 2>/dev/null
if mkdir held 2>/dev/null; then
    : >"$mine" || exit 1
    if alone "$mine"; then echo won; exit 0; fi
    rm -f "$mine"
fi
for name in held/*; do
    [ -e "$name" ] || continue
    until=${name##*.}; there=${name%.*}; old=${there%%.*}; old=${old#held/}; there=${there#*.}
    if [ "$name" = "$dead" ] || [ "$there" != "$here" ] || [ "$until" -lt "$now" ]; then
        if mv "$name" "$mine" 2>/dev/null; then
            if alone "$mine"; then
                printf 'won over %s\n' "$(cat "holders/$old")"
                rm -f "holders/$old"; exit 0
            fi
            rm -f "$mine"
        fi
        continue
    fi
    rm -f "holders/$token"
    printf 'held %s %s\n' "$name" "$(cat "holders/$old")"
    exit 0
done
rm -f "holders/$token"
echo held
