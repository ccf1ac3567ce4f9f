#!/bin/sh
# What differs between Linux, macOS and Android. The last three set the variable of their name: printing would cost a
# process for each call.
# own_session COMMAND ...: run COMMAND as the leader of a new session; it must be the last command of a background
#     list, so that `$!` is the id of that session.
# sha256 FILE ...: print a line with the hash of each file.
# state FILE ...: print a line with the inode, size and times of each file; nothing if the device has no `stat`.
# now: the device's clock in seconds, from a clock that survives corrections of the date where there is one.
# boot: an id of the current boot.
# started PID: a token that no later process with that id shares; empty if the process has ended.

boot=
own_session() {
    if command -v setsid >/dev/null 2>&1; then exec setsid "$@"; fi
    exec perl -MPOSIX -e 'setsid(); exec {$ARGV[0]} @ARGV; exit 127' -- "$@"
}
sha256() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}
state() {
    if [ -d /proc/self ] || stat -c %i . >/dev/null 2>&1; then LC_ALL=C stat -c '%i %s %y %z' "$@"
    else stat -f '%i %z %Fm %Fc' "$@"; fi 2>/dev/null
}
# shellcheck disable=SC2034 # for the scripts that need this one
now() {
    if [ -r /proc/uptime ]; then read -r now _ </proc/uptime
    else now=$(perl -MTime::HiRes=time -e 'printf "%.2f", time'); fi
}
boot() {
    if [ -n "$boot" ] || read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id; then return 0; fi
    boot=$(sysctl -n kern.bootsessionuuid 2>/dev/null || sysctl -n kern.boottime | tr -dc '0-9')
}
# shellcheck disable=SC2034 # for the scripts that need this one
started() {
    started=
    if [ -d /proc/self ]; then
        stat=; read -r stat 2>/dev/null <"/proc/$1/stat" || return 0
        # shellcheck disable=SC2086 # split into fields
        set -- ${stat##*) }
        [ "$1" = Z ] || started=${20}
    else
        started=$(ps -o lstart= -p "$1" | tr -dc '0-9A-Za-z:')
    fi
}
