#!/bin/sh
# Arguments: JOB TOKEN DEADLINE NOTE
# Enforce the deadline of a job from another session, even without a controller.
# needs: job_common

job=$1; token=$2; deadline=$3; note=$4
sleep "$deadline"
[ ! -e job/rc ] && still_ours "$job" "$token" || exit
: >job/late
kill -TERM "-$job"
# shellcheck disable=SC2034 # only counts
for turn in 1 2 3 4 5; do sleep 0.2; [ -e job/rc ] && exit; done
kill -KILL "-$job"
read -r _ _ begin _ <job/pid
finish "137 $begin $(now)"
rm -f "$note"
