#!/bin/sh
# Arguments: PLACE GUARD NAME ...
# Print the hashes of the named files in PLACE (a file, or a folder of executable files), or `no` if one is missing; mark
# PLACE as used.
# GUARD contains the inode, size and times of the files as they were hashed, then the hashes: files that still have
# them are not read again. Without `stat` they are read every time.
# needs: store_guard

place=$1; guard=$2; shift 2
[ -e "$place" ] || { echo no; exit 0; }
if [ -d "$place" ]; then cd "$place" || exit 1; fi
now=$(state "$@"); recorded=$(cat "$guard" 2>/dev/null)
if [ -n "$now" ] && [ "${recorded%%=*}" = "$now
" ]; then
    hashes=${recorded#*=}
else
    hashes=$(sha256 "$@" 2>/dev/null) && [ "$(state "$@")" = "$now" ] || { echo no; exit 0; }
fi
touch -c "$place"
[ ! -d "$place" ] || chmod 755 "$@" 2>/dev/null
write_guard "$guard" "$hashes" "$@"
printf '%s\n' "$hashes"
