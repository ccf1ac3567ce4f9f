#!/bin/sh
# Arguments: MACHINE_FOLDER TOKEN TTL_S
# Print `kept` if the lease was extended.
# needs: lease_common

start_lease "$1" "$2"
keep_lease "$3"
