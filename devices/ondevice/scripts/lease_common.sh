#!/bin/sh
# start_lease MACHINE_FOLDER TOKEN: change to the folder and set `now` and `boot` for the functions below.
# newest: set `newest` to the highest number of a lease, 0 if there is none.
# valid NUMBER [DEAD]: set `name` to the lease with that number; succeed unless it has expired, is of another boot or is
#     DEAD. One without a file is between two system calls of its holder; if that was killed there, it is free after a
#     minute.
# rival MINE LOWEST [DEAD]: succeed if a lease with a number of at least LOWEST, other than the folder MINE, is valid.
# waiter FILE: succeed if FILE is that of a process that waits; set `rank`, its priority, and `came`, when it came. A file
#     that was not refreshed for WAITS_S, or has another name, is removed.
# look_at_waiters PRIORITY SINCE FILE: set `highest` to the highest priority that waits, if any, and `ahead` to the number
#     of waiters that come before FILE, which waits SINCE with PRIORITY. Of the same second, the token decides.
# keep_lease TTL_S: extend our lease if it ends sooner, or only check it if TTL_S is empty; if it is ours, print `kept` and
#     the highest priority that waits, if any. Another process may acquire the device at the same moment. It withdraws if
#     it finds our lease valid, so wait for that. An expired lease gives way to every other one; of two valid ones, which
#     only a pause in this script can cause, the newer wins.
# remove_lines PATHS: remove the paths, one in each line.
# needs: machine

WAITS_S=30
start_lease() {
    enter_machine "$1" || exit 1
    token=$2; boot; now; now=${now%%.*}
}
newest() {
    newest=0
    for entry in lease-*; do
        number=${entry#lease-}
        case $number in 0* | *[!0-9]* | ??????????*) continue ;; esac
        [ "$number" -le "$newest" ] || newest=$number
    done
}
valid() {
    for name in "lease-$1"/*.*.*; do [ ! -f "$name" ] || break; done
    if [ ! -f "$name" ]; then
        [ -d "lease-$1" ] && [ -z "$(find "lease-$1" -maxdepth 0 -mmin +1 2>/dev/null)" ]
        return
    fi
    there=${name%.*}; there=${there#*.}
    [ "$name" != "$2" ] && [ "$there" = "$boot" ] && [ "${name##*.}" -ge "$now" ] 2>/dev/null
}
rival() {
    for entry in lease-*; do
        number=${entry#lease-}
        [ "$entry" != "$1" ] && [ "$number" -ge "$2" ] 2>/dev/null && valid "$number" "$3" && return
    done
    return 1
}
number() { case $1 in '' | 0?* | *[!0-9]* | ???????????*) return 1 ;; esac; }
waiter() {
    [ -f "$1" ] || return 1
    rank=${1#wait-}; came=${rank#*.}; there=${came#*.*.}; ends=${there#*.}
    rank=${rank%%.*}; came=${came%%.*}; there=${there%%.*}
    number "${rank#-}" && number "$came" && number "$ends" && [ "$there" = "$boot" ] &&
        [ "$ends" -ge "$now" ] && [ "$ends" -le $((now + WAITS_S)) ] && return
    rm -f "$1" 2>/dev/null
    return 1
}
look_at_waiters() {
    ahead=0; highest=; before_ours=1
    for entry in wait-*; do
        if [ "$entry" = "$3" ]; then before_ours=0; continue; fi
        waiter "$entry" || continue
        [ "${highest:-$rank}" -gt "$rank" ] || highest=$rank
        if [ "$rank" -gt "$1" ]; then ahead=$((ahead + 1))
        elif [ "$rank" -eq "$1" ] && [ "$came" -lt $(($2 + before_ours)) ]; then ahead=$((ahead + 1)); fi
    done
}
remove_lines() (
    IFS='
'
    set -f
    # shellcheck disable=SC2086 # one path for each line
    exec rm -rf -- $1
)
keep_lease() {
    for mine in lease-*/"$token".*; do [ ! -f "$mine" ] || break; done
    mine=${mine%/*}; lowest=0; tries=4
    if valid "${mine#lease-}"; then lowest=${mine#lease-}; tries=20; fi
    if [ -n "$1" ] && [ "${name##*.}" -lt "$((now + $1))" ] 2>/dev/null; then
        mv "$name" "$mine/$token.$boot.$((now + $1))" 2>/dev/null || return 0
    fi
    while [ -d "$mine" ]; do
        rival "$mine" "$lowest" || { look_at_waiters 0 0 ""; echo "kept $highest"; return 0; }
        tries=$((tries - 1)); [ "$tries" -gt 0 ] || rm -rf "$mine"
        sleep 0.1
    done
}
