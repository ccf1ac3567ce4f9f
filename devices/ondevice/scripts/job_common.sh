#!/bin/sh
# still_ours PID TOKEN: succeed if the group PID may be killed, that is, if its leader is the recorded process or has ended:
#     the kernel does not reuse an id that still names a group. Sets `leader`.
# finish LINE: write the exit record. It overwrites the space reserved at the start of the job, because the command may
#     have filled the disk.
# last_process: set `last` to the largest process id so far, where the kernel counts them up.
# environs FIRST SECONDS: set `environs` to the files with the environment of the processes that were started after FIRST,
#     SECONDS ago; of all processes if FIRST is empty, or after 30 seconds: every system has 32768 ids before it uses one
#     again, and starts less than 1000 processes a second.
# end_daemons NAME [FIRST SECONDS]: end what the command of the job NAME left in other sessions: it inherited the variable
#     ETFARM_JOB.
# needs: dialect

still_ours() { started "$1"; leader=$started; [ -z "$leader" ] || [ "$leader" = "$2" ]; }
finish() { printf '%s\n' "$1" 1<>job/rc.part && mv job/rc.part job/rc; }
last_process() { last=; read -r _ _ _ _ last 2>/dev/null </proc/loadavg || return 0; }
environs() {
    last_process
    if [ -z "$1" ] || [ "$2" -ge 30 ] || [ "$last" -lt "$1" ]; then environs='/proc/[0-9]*/environ'; return; fi
    environs=
    if [ $((last - $1)) -gt 200 ]; then # then a list of all is read faster
        for process in /proc/[0-9]*; do
            [ "${process#/proc/}" -le "$1" ] || environs="$environs $process/environ"
        done
        return
    fi
    while [ "$last" -gt "$1" ]; do
        [ ! -d "/proc/$last" ] || environs="$environs /proc/$last/environ"
        last=$((last - 1))
    done
}
end_daemons() {
    if [ -d /proc/self ]; then
        environs "$2" "$3"
        [ -n "$environs" ] || return 0
        # shellcheck disable=SC2086 # one word for each process
        daemons=$(LC_ALL=C grep -lF "ETFARM_JOB=$1." $environs 2>/dev/null |
            while IFS=/ read -r _ _ pid _; do echo "$pid"; done)
    else
        daemons=$(ps -axwwE -o pid=,command= |
            awk -v mark="ETFARM_JOB=$1." 'index($0, mark) && !/awk -v/ { print $1 }')
    fi
    # shellcheck disable=SC2086 # one word for each process
    [ -z "$daemons" ] || kill -KILL $daemons 2>/dev/null
}
