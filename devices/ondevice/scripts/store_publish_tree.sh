#!/bin/sh
# Arguments: PART FINAL
# Rename an unpacked folder to its final name. A folder cannot be renamed over another: a broken one is moved away first,
# and `mv` into one that another controller published meanwhile puts ours inside it, from where it is removed.

part=$1; final=$2; name=${part##*/}
mkdir -p "${final%/*}" || exit 1
if [ -e "$final" ]; then mv "$final" "$part.broken"; rm -rf "$part.broken"; fi
mv "$part" "$final" || exit 1
rm -rf "${final:?}/${name:?}"
