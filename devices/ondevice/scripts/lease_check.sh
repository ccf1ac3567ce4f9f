#!/bin/sh
# Print `kept` if the lease is still held.
# needs: lease_common

for name in held/"$token".*; do [ ! -e "$name" ] || echo kept; done
