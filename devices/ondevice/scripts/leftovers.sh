#!/bin/sh
# Arguments: ROOT
# Print the number of jobs, the number of session folders, and the size of these folders in kilobytes.

entries() { find "$1" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l; }
size=$(du -sk "$1/sessions" 2>/dev/null)
echo "$(entries "$1/jobs")" "$(entries "$1/sessions")" "${size%%[!0-9]*}"
