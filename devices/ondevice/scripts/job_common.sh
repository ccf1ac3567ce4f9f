#!/bin/sh
# still_ours PID TOKEN: succeed if the group PID may be killed, that is, if its leader is the recorded process or has ended:
#     the kernel does not reuse an id that still names a group. Sets `leader`.
# finish LINE: write the exit record. It overwrites the space reserved at the start of the job, because the command may
#     have filled the disk.
# end_daemons NAME: end what the command of the job NAME left in other sessions: it inherited the variable ETFARM_JOB.
# needs: dialect

still_ours() { leader=$(started "$1"); [ -z "$leader" ] || [ "$leader" = "$2" ]; }
finish() { printf '%s\n' "$1" 1<>job/rc.part && mv job/rc.part job/rc; }
end_daemons() {
    if [ -d /proc/self ]; then
        daemons=$(LC_ALL=C grep -lF "ETFARM_JOB=$1." /proc/[0-9]*/environ 2>/dev/null |
            while IFS=/ read -r _ _ pid _; do echo "$pid"; done)
    else
        daemons=$(ps -axwwE -o pid=,command= |
            awk -v mark="ETFARM_JOB=$1." 'index($0, mark) && !/awk -v/ { print $1 }')
    fi
    # shellcheck disable=SC2086 # one word for each process
    [ -z "$daemons" ] || kill -KILL $daemons 2>/dev/null
}
