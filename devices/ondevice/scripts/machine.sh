#!/bin/sh
# What all farms share that use this machine, under whichever user and root: leases, waiters, and notes of jobs.
#     lease-NUMBER/TOKEN.BOOT.EXPIRY   a lease; the next one gets the next number
#     wait-PRIORITY.SINCE.TOKEN.BOOT.EXPIRY   who waits for it
#     job-PID-TOKEN                    a job that is running: PID BOOT BEGIN WATCHDOG TOKEN ROOT
#     ran-PID-TOKEN-END                the same, of a job that ended at END (hundredths of a second of the device's clock)
# Every user may add an entry, and only its owner may change it: the folder is sticky. Nothing in it is executed, and no
# process is ended because of a note of another user.
# enter_machine FOLDER: change to the folder, "" for the default; create it if it is missing. No link is followed, neither
#     to the folder nor (set -C) to a file that is written in it. `umask 022` before such a file: others read it.
# hundredths SECONDS: set `hundredths` to seconds with two decimals as an integer.
# beside NAME [BEGIN]: set `beside` to the ROOT of a job other than NAME that is running, or ran after BEGIN (hundredths).
# note_end NAME [FILE ...]: record in the current folder that the job NAME has ended, and remove the FILEs. Records of jobs
#     that ended earlier are needed as long as another job is running that may have begun before their end.
# needs: job_common

enter_machine() {
    shared=$1
    if [ -z "$shared" ]; then
        shared=/tmp; [ ! -d /data/local/tmp ] || shared=/data/local/tmp
        shared=$shared/etfarm-machine
    fi
    [ -d "$shared" ] || { mkdir -p "${shared%/*}" && (umask 0; mkdir -m 1777 "$shared" 2>/dev/null); }
    cd -P "${shared%/*}/" && parent=${PWD%/} && cd -P "./${shared##*/}" && [ "$PWD" = "$parent/${shared##*/}" ] &&
        [ -w . ] && set -C && return
    echo "$shared is not a folder that every user can write to; remove it, or \`chmod 1777\` it as its owner" >&2
    return 1
}
hundredths() { hundredths=${1%.*}${1#*.}; }
beside() {
    beside=; boot
    for record in job-*; do
        if [ ! -f "$record" ] || [ "$record" = "job-$1" ]; then continue; fi
        read -r other there since _ mark where <"$record" || continue
        [ "$there" = "$boot" ] || continue
        started "$other"; hundredths "$since"
        if [ "$started" = "$mark" ] || [ "$hundredths" -gt "${2:-$hundredths}" ] 2>/dev/null; then
            beside=$where; return
        fi
    done
    [ -n "$2" ] || return 0
    for record in ran-*; do
        { [ -f "$record" ] && [ "${record##*-}" -gt "$2" ]; } 2>/dev/null || continue
        if read -r _ there _ _ _ where <"$record" && [ "$there" = "$boot" ]; then beside=$where; return; fi
    done
}
note_end() {
    ended=$1; shift
    beside "$ended"
    [ -n "$beside" ] || set -- "$@" ran-*
    if [ -f "job-$ended" ]; then
        now; hundredths "$now"
        read -r record <"job-$ended"; echo "$record" >"ran-$ended-$hundredths"
    fi
    rm -f "job-$ended" "$@" 2>/dev/null
}
