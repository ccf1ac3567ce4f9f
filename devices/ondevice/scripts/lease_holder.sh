#!/bin/sh
# Arguments: MACHINE_FOLDER
# Print the record of the current holder, if there is one.
# needs: lease_common

start_lease "$1" ""
newest
if valid "$newest" && [ -f "$name" ]; then head -c 4096 "$name"; fi
