#!/bin/sh
# What all farms share that use this machine, under whichever user and root: leases, and notes of jobs.
#     lease-NUMBER/TOKEN.BOOT.EXPIRY   the lease with the highest number counts
#     job-PID-TOKEN                    a job that is running: PID BOOT BEGIN WATCHDOG TOKEN ROOT
#     ran-PID-TOKEN-END                the same, of a job that ended at END (hundredths of a second of the device's clock)
# Every user may add an entry, and only its owner may change it: the folder is sticky. Nothing in it is executed, and no
# process is ended because of a note of another user.
# enter_machine FOLDER: change to the folder, "" for the default; create it if it is missing. No link is followed, neither
#     to the folder nor (set -C) to a file that is written in it. Call it in a subshell or at the start of a script.
# hundredths SECONDS: print seconds with two decimals as an integer.
# note_end NAME: record in the current folder that the job NAME has ended; its owner's old records are removed.
# beside NAME [BEGIN]: print the ROOT of a job other than NAME that is running, or ran after BEGIN (hundredths).
# needs: job_common

enter_machine() {
    shared=$1
    if [ -z "$shared" ]; then
        shared=/tmp; [ ! -d /data/local/tmp ] || shared=/data/local/tmp
        shared=$shared/etfarm-machine
    fi
    [ -d "$shared" ] || { mkdir -p "${shared%/*}" && (umask 0; mkdir -m 1777 "$shared" 2>/dev/null); }
    parent=$(cd -P "${shared%/*}" && pwd -P) && cd -P "$shared" && [ "$(pwd -P)" = "$parent/${shared##*/}" ] &&
        [ -w . ] && umask 022 && set -C && return
    echo "$shared is not a folder that every user can write to; remove it, or \`chmod 1777\` it as its owner" >&2
    return 1
}
hundredths() { echo "${1%.*}${1#*.}"; }
note_end() {
    [ ! -f "job-$1" ] || cat "job-$1" >"ran-$1-$(hundredths "$(now)")"
    rm -f "job-$1"
    find . -maxdepth 1 -name 'ran-*' -mmin +1440 -exec rm -f {} + 2>/dev/null
}
beside() {
    current=$(boot)
    for note in job-* ran-*; do
        [ -f "$note" ] && [ "${note#job-}" != "$1" ] || continue
        if [ "${note#ran-}" != "$note" ]; then [ "${note##*-}" -gt "${2:-${note##*-}}" ] || continue; fi 2>/dev/null
        read -r other there since _ mark where <"$note" || continue
        [ "$there" = "$current" ] || continue
        if [ "${note#ran-}" != "$note" ] || [ "$(started "$other")" = "$mark" ] ||
            [ "$(hundredths "$since")" -gt "${2:-$(hundredths "$since")}" ] 2>/dev/null; then
            echo "$where"
            return
        fi
    done
}
