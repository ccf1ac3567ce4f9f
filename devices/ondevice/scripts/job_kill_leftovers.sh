#!/bin/sh
# Arguments: ROOT MACHINE_FOLDER
# End every job of this root or of this user that is still running and print the group id of each.
# needs: machine

enter_machine "$2" || exit 1
umask 022
boot
end_job() {
    read -r pid there _ _ token _ <"$1"
    if [ "$boot" = "$there" ] && still_ours "$pid" "$token"; then
        if kill -KILL "-$pid" 2>/dev/null; then echo "$pid"; note_end "$2"; fi
    fi
    end_daemons "$2"
    rm -f "$1" "job-$2"
}
for note in "$1"/jobs/*; do [ ! -f "$note" ] || end_job "$note" "${note##*/}"; done
find . -maxdepth 1 -name 'job-*' -type f -user "$(id -u)" | while read -r note; do end_job "$note" "${note#./job-}"; done
