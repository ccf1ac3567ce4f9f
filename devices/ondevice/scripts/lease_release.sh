#!/bin/sh
# Arguments: MACHINE_FOLDER TOKEN
# Release the lease.
# needs: lease_common

start_lease "$1" "$2"
for name in lease-*/"$token".*; do [ ! -f "$name" ] || rm -rf "${name%/*}"; done
