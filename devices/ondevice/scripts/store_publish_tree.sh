#!/bin/sh
# Arguments: PART FINAL
# Rename an unpacked folder to its final name. A folder cannot be renamed over another, so a broken one is moved away first.
# If another controller published the folder meanwhile, `mv` puts ours inside it, and the last line removes ours.

part=$1; final=$2; name=${part##*/}
mkdir -p "${final%/*}" || exit 1
if [ -e "$final" ]; then mv "$final" "$part.broken"; rm -rf "$part.broken"; fi
mv "$part" "$final" || exit 1
rm -rf "${final:?}/${name:?}"
