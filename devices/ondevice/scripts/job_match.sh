#!/bin/sh
# match_job FOLDER IDENTITY MACHINE_FOLDER LEASE TTL_S: print `ended` if the job of FOLDER has ended and is of this identity;
#     remove the folder otherwise. Print `unleased` and remove nothing if the lease with the token LEASE, "" for none, is
#     not ours: the job may be another holder's. Our lease is extended to TTL_S, unless that is empty.
# needs: lease_common

match_job() {
    if [ -n "$4" ]; then
        kept=$(start_lease "$3" "$4"; keep_lease "$5") || exit 1
        [ -n "$kept" ] || { echo unleased; return 0; }
    fi
    if [ -e "$1/job/rc" ] && [ "$(cat "$1/job/identity" 2>/dev/null)" = "$2" ]; then echo ended; else rm -rf "$1"; fi
}
