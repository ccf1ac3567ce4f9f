#!/bin/sh
# Arguments: FOLDER
# Unmount what small_disk mounted at FOLDER, and remove the folder; nothing happens if there is none.

[ -d "$1" ] || exit 0
if command -v hdiutil >/dev/null 2>&1; then hdiutil detach "$1" >/dev/null 2>&1
else umount "$1" 2>/dev/null; fi
[ ! -d "$1" ] || rmdir "$1"
