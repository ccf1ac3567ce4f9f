#!/bin/sh
# Release the lease.
# needs: lease_common

rm -f held/"$token".* "holders/$token"; rmdir held 2>/dev/null; true
