#!/bin/sh
# Arguments: MACHINE_FOLDER
# Print `held HOLDER` if the machine is held, then for each waiter
#     PRIORITY SINCE TOKEN HOLDER
# A waiter whose file is empty is just now writing it.
# needs: lease_common

start_lease "$1" "" || exit
record() { head -c 4096 "$1" | head -n 1; }
for entry in lease-*; do
    if valid "${entry#lease-}" && [ -f "$name" ]; then printf 'held %s\n' "$(record "$name")"; break; fi
done
for file in wait-*; do
    if ! waiter "$file" || [ ! -s "$file" ]; then continue; fi
    owner=${file#wait-*.*.}
    printf '%s %s %s %s\n' "$rank" "$came" "${owner%%.*}" "$(record "$file")"
done
