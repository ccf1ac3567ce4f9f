#!/bin/sh
# Arguments: MACHINE_FOLDER TOKEN
# Print `kept` if the lease is still held.
# needs: lease_common

start_lease "$1" "$2"
keep_lease ""
