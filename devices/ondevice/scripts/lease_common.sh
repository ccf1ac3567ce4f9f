#!/bin/sh
# start_lease MACHINE_FOLDER TOKEN: change to the folder and set `now` and `boot` for the functions below; fail if it is
#     unusable.
# read_clock: set `now`, in whole seconds.
# newest: set `newest` to the highest number of a lease, 0 if there is none.
# valid NUMBER [DEAD] [TOKEN]: set `name` to a file of the lease with that number; succeed unless each has expired, is of
#     another boot, is one of DEAD (names, separated by blanks) or is of TOKEN. A lease without a file is between two
#     system calls of its holder; if that was killed there, it is free after a minute.
# rival DEAD: succeed if a lease that is not ours, and none of DEAD, is valid; set `name` to it.
# remove FILE: remove a lease. Only this file: after a pause, its folder may be that of a later lease of the same number.
# remove_others FOLDER DEAD: remove all leases that are not valid, except the one in FOLDER.
# ours: set `mine` to the file of our lease; fail if there is none. Another call for our lease may rename it meanwhile.
# waiter FILE: succeed if FILE is that of a process that waits; set `rank`, its priority, and `came`, when it came. A file
#     that was not refreshed for WAITS_S, or has another name, is removed.
# look_at_waiters PRIORITY SINCE FILE: set `highest` to the highest priority that waits, if any, and `ahead` to the number
#     of waiters that come before FILE, which waits SINCE with PRIORITY. Of the same second, the token decides.
# keep_lease TTL_S [SPARE_S]: extend our lease, by SPARE_S more, if it ends sooner than in TTL_S; or only check it if TTL_S
#     is empty. Set `kept` if it is ours, and `highest` as above. A lease that was still valid after it was extended is
#     ours: whoever makes another one looks at ours after that, and withdraws. An expired one gives way to every other
#     one; one that is only just being made may withdraw, so wait for that.
# remove_lines PATHS: remove the paths, one in each line.
# needs: machine

WAITS_S=30
start_lease() {
    enter_machine "$1" || return
    token=$2; boot; read_clock
}
read_clock() { now; now=${now%%.*}; }
newest() {
    newest=0
    for entry in lease-*; do
        number=${entry#lease-}
        case $number in 0* | *[!0-9]* | ??????????*) continue ;; esac
        [ "$number" -le "$newest" ] || newest=$number
    done
}
valid() {
    is_old=
    while :; do
        missing=
        for name in "lease-$1"/*.*.*; do
            case $name in "lease-$1/$3".*) continue ;; esac
            if [ -f "$name" ]; then
                there=${name%.*}; there=${there#*.}
                case " $2 " in *" $name "*) continue ;; esac
                [ "$there" = "$boot" ] && [ "${name##*.}" -ge "$now" ] 2>/dev/null && return
            elif [ ! -e "$name" ] && [ ! -L "$name" ]; then missing=1; fi
        done
        if [ -z "$missing" ] || [ ! -d "lease-$1" ]; then return 1; fi
        if [ "$name" != "lease-$1/*.*.*" ]; then is_old=; continue; fi # renamed after the folder was read
        [ -z "$is_old" ] || return 1
        is_old=$(find "lease-$1" -maxdepth 0 -mmin +1 2>/dev/null)
        [ -n "$is_old" ] || return 0 # look again: it may have got its file before it was old
    done
}
rival() {
    for entry in lease-*; do
        [ "${entry#lease-}" -ge 0 ] 2>/dev/null && valid "${entry#lease-}" "$1" "$token" && return
    done
    return 1
}
remove() { rm -f "$1" 2>/dev/null; rmdir "${1%/*}" 2>/dev/null; }
remove_others() { for entry in lease-*; do [ "$entry" = "$1" ] || valid "${entry#lease-}" "$2" || remove "$name"; done; }
ours() {
    for _ in 1 2 3; do
        for mine in lease-*/"$token".*; do [ ! -f "$mine" ] || return 0; done
        [ "$mine" != "lease-*/$token.*" ] || return 1
    done
    return 1
}
number() { case $1 in '' | 0?* | *[!0-9]* | ???????????*) return 1 ;; esac; }
waiter() {
    [ -f "$1" ] || return 1
    rank=${1#wait-}; came=${rank#*.}; there=${came#*.*.}; ends=${there#*.}
    rank=${rank%%.*}; came=${came%%.*}; there=${there%%.*}
    if number "${rank#-}" && number "$came" && number "$ends" && [ "$there" = "$boot" ]; then
        [ "$ends" -le $((now + WAITS_S)) ] || read_clock # it was refreshed after the clock was read
        [ "$ends" -ge "$now" ] && [ "$ends" -le $((now + WAITS_S)) ] && return
    fi
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
# shellcheck disable=SC2034 # for the scripts that need this one
keep_lease() {
    kept=; until=0; tries=4
    while ours; do
        there=${mine%.*}; ends=0
        [ "${there#*.}" != "$boot" ] || ends=${mine##*.}
        until=$ends
        if [ -z "$1" ] || [ "$ends" -ge $((now + $1)) ]; then break; fi
        ! mv "$mine" "${mine%%.*}.$boot.$((now + $1 + ${2:-0}))" 2>/dev/null || break
        tries=$((tries - 1)); [ "$tries" -gt 0 ] || return 0
    done
    read_clock; tries=4
    while [ "$until" -lt "$now" ] && rival ""; do
        tries=$((tries - 1))
        if [ "$tries" -eq 0 ]; then ours && remove "$mine"; return 0; fi
        sleep 0.1
    done
    ours || return 0
    kept=1; look_at_waiters 0 0 ""
}
