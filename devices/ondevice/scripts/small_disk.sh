#!/bin/sh
# Arguments: FOLDER MEGABYTES
# Mount an empty disk of that size in memory at FOLDER. Print `mounted`, or `cannot` and what would be needed.

folder=$1; megabytes=$2
cannot() { rmdir "$folder" 2>/dev/null; echo "cannot $1"; exit 0; }
mkdir -p "$folder" || exit 1
if command -v sw_vers >/dev/null 2>&1; then
    command -v hdiutil >/dev/null 2>&1 || cannot "it needs macOS's hdiutil, which this device does not have"
    disk=$(hdiutil attach -nomount "ram://$((megabytes * 2048))" 2>/dev/null | tr -d '[:space:]')
    [ -n "$disk" ] || cannot "it needs a RAM disk, and hdiutil attached none"
    if ! { newfs_hfs "$disk" && diskutil mount -mountPoint "$folder" "$disk"; } >/dev/null 2>&1; then
        hdiutil detach "$disk" >/dev/null 2>&1
        cannot "it needs a RAM disk, and diskutil did not mount one"
    fi
else
    [ "$(id -u)" = 0 ] || cannot "it needs root on the device, to mount a small disk"
    mount -t tmpfs -o "size=${megabytes}m" tmpfs "$folder" 2>/dev/null ||
        cannot "it needs the right to mount a tmpfs, which the device refuses to root"
fi
echo mounted
