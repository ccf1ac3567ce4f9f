#!/bin/sh
# Arguments: FOLDER IDENTITY
# Print `ended` if the job of FOLDER has ended and is of this identity; remove the folder otherwise.

if [ -e "$1/job/rc" ] && [ "$(cat "$1/job/identity" 2>/dev/null)" = "$2" ]; then echo ended; else rm -rf "$1"; fi
