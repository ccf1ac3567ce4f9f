#!/bin/sh
# Arguments: JOB TOKEN DEADLINE NOTE MACHINE_FOLDER
# Enforce the deadline of a job from another session, even without a controller. A job whose command has ended gets five
# seconds to record the conditions.
# needs: machine

job=$1; token=$2; deadline=$3; note=$4; machine=$5
exit_with_job() {
    turns=$1
    while [ "$turns" -gt 0 ]; do sleep 0.2; [ ! -e job/rc ] || exit 0; turns=$((turns - 1)); done
}
sleep "$deadline"
[ ! -e job/ended ] || exit_with_job 25
[ ! -e job/rc ] && still_ours "$job" "$token" || exit
: >job/late
kill -TERM "-$job"
exit_with_job 5
[ ! -e job/ended ] || exit_with_job 25
kill -KILL "-$job"
end_daemons "${note##*/}"
(enter_machine "$machine" && note_end "${note##*/}" "$note")
read -r _ _ begin _ <job/pid
now
finish "137 $begin $now $(date +%s)"
