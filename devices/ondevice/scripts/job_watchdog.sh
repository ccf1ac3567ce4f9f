#!/bin/sh
# watch_deadline DEADLINE MACHINE_FOLDER NAME NOTE: as a process of the job's group, enforce its deadline, even without a
#     controller. A job whose command has ended gets five seconds to record the conditions. A command that ignores TERM is
#     killed, and the job gets a second to record that. What has left no record then is recorded here, and the last line
#     ends the group.
# needs: machine

exit_with_job() {
    turns=$1
    while [ "$turns" -gt 0 ]; do [ ! -e job/rc ] || exit 0; sleep 0.2; turns=$((turns - 1)); done
}
watch_deadline() {
    trap '' TERM
    sleep "$1"
    [ ! -e job/ended ] || exit_with_job 25
    [ ! -e job/rc ] || exit 0
    : >job/late
    kill -TERM 0
    exit_with_job 5
    [ -e job/ended ] || { end_daemons "$3"; exit_with_job 5; }
    [ ! -e job/ended ] || exit_with_job 25
    end_daemons "$3"
    (enter_machine "$2" && umask 022 && note_end "$3" "$4")
    read -r _ _ begin _ <job/pid
    now
    finish "137 $begin $now"
    kill -KILL 0
}
