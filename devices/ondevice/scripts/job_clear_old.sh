#!/bin/sh
# Arguments: ROOT DAYS GROUP
# Remove the folders of jobs that nobody collected for more than DAYS, and those of jobs that never started. Print the
# names of those whose identity begins with `GROUP-`.

cd "$1/sessions" 2>/dev/null || exit 0
find . -mindepth 1 -maxdepth 1 -mtime "+$2" -exec rm -rf {} +
for folder in *; do
    [ -d "$folder/job" ] || rm -rf "$folder"
    identity=; [ ! -f "$folder/job/identity" ] || read -r identity <"$folder/job/identity"
    case $identity in "$3"-*) echo "$folder" ;; esac
done
