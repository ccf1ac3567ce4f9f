#!/bin/sh
# Arguments: PART FINAL SHA256 GUARD
# Verify an uploaded file, mark it as used and rename it to its final name; print the hash that arrived. GUARD is written
# as by store_hashes.sh, so that the first use of the file does not read it again.
# needs: store_guard

part=$1; final=$2; expected=$3; guard=$4
touch "$part" || exit 1
before=$(state "$part")
got=$(sha256 "$part") || exit 1
if [ "${got%% *}" != "$expected" ]; then rm -f "$part"; echo "${got%% *}"; exit 0; fi
after=$(state "$part")
mkdir -p "${final%/*}" && mv -f "$part" "$final" || exit 1
[ "$before" != "$after" ] || write_guard "$guard" "$got" "$final" || exit 1
echo "$expected"
