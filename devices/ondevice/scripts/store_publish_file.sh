#!/bin/sh
# Arguments: PART FINAL EXECUTABLE WANTED_SHA256
# Verify an uploaded file and rename it to its final name; print the hash that arrived.
# needs: dialect

part=$1; final=$2; executable=$3; want=$4
got=$(sha256 "$part") || exit 1
if [ "${got%% *}" != "$want" ]; then rm -f "$part"; echo "${got%% *}"; exit 0; fi
[ -z "$executable" ] || chmod 755 "$part" || exit 1
mkdir -p "${final%/*}" && mv -f "$part" "$final" && echo "$want"
