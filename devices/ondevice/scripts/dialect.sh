#!/bin/sh
# What differs between Linux, macOS and Android.
# own_session COMMAND ...: run COMMAND as the leader of a new session; it must be the last command of a background
#     list, so that `$!` is the id of that session.
# sha256 FILE ...: print a line with the hash of each file.
# state FILE ...: print a line with the inode, size and times of each file; nothing if the device has no `stat`.
# now: print the device's clock in seconds, from a clock that survives corrections of the date where there is one.
# boot: print an id of the current boot.
# started PID: print a token that no later process with that id shares; nothing if the process has ended.

own_session() {
    if command -v setsid >/dev/null 2>&1; then exec setsid "$@"; fi
    exec perl -MPOSIX -e 'setsid(); exec {$ARGV[0]} @ARGV; exit 127' -- "$@"
}
sha256() {
    if command -v sha256sum >/dev/null 2>&1; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}
state() {
    if stat -c %i . >/dev/null 2>&1; then stat -c '%i %s %y %z' "$@"; else stat -f '%i %z %Fm %Fc' "$@"; fi 2>/dev/null
}
now() {
    if [ -r /proc/uptime ]; then read -r now _ </proc/uptime
    else now=$(perl -MTime::HiRes=time -e 'printf "%.2f", time'); fi
    echo "$now"
}
boot() {
    cat /proc/sys/kernel/random/boot_id 2>/dev/null ||
        sysctl -n kern.bootsessionuuid 2>/dev/null || sysctl -n kern.boottime | tr -dc '0-9'
}
started() {
    if [ -d /proc/self ]; then
        line=; read -r line 2>/dev/null <"/proc/$1/stat" || return 0
        # shellcheck disable=SC2086 # split into fields
        set -- ${line##*) }
        [ "$1" = Z ] || echo "${20}"
    else
        ps -o lstart= -p "$1" | tr -dc '0-9A-Za-z:'
    fi
}
