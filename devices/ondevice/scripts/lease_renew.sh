#!/bin/sh
# Arguments: LEASE_FOLDER TOKEN TTL_S
# Print `kept` if the lease was extended.
# needs: lease_common

for name in held/"$token".*; do
    [ -e "$name" ] || continue
    next="held/$token.$here.$((now + $3))"
    if [ "$name" = "$next" ] || mv "$name" "$next" 2>/dev/null; then echo kept; fi
done
