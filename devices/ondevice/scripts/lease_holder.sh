#!/bin/sh
# Arguments: LEASE_FOLDER
# Print the record of the current holder, if there is one.

for name in "$1"/held/*; do
    [ -e "$name" ] || continue
    token=${name##*/}; cat "$1/holders/${token%%.*}"
done
