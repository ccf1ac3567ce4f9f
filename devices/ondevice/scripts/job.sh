#!/bin/sh
# Arguments: FOLDER ROOT DEADLINE WATCHDOG_SCRIPT COMMAND [ARGUMENT ...]
# The job itself. With the trap this shell survives the watchdog's TERM and records how the command ended. The last line
# ends the rest of the group, including this shell: processes that the command left would disturb the next session.
# needs: job_common

folder=$1; root=$2; deadline=$3; watchdog_script=$4; shift 4
cd "$folder" && mkdir -p "$root/jobs" || exit 1
trap : TERM
token=$(started $$); note="$root/jobs/$$-$token"
own_session sh -c "$watchdog_script" sh $$ "$token" "$deadline" "$note" &
watchdog=$!
begin=$(now)
# shellcheck disable=SC2015 # either step that fails ends the job
printf '%64s\n' '' >job/rc.part && echo "$$ $(boot) $begin $watchdog $token" >job/pid.part &&
    cp job/pid.part "$note" && mv job/pid.part job/pid || { kill -KILL "-$watchdog"; exit 1; }
"$@" >stdout.txt 2>stderr.txt
finish "$? $begin $(now)"
rm -f "$note"
kill -KILL "-$watchdog"
kill -KILL 0
