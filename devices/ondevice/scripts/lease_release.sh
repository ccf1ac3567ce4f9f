#!/bin/sh
# Give the lease back.
# needs: lease_common

rm -f held/"$token".* "holders/$token"; rmdir held 2>/dev/null; true
