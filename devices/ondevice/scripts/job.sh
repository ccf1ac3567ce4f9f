#!/bin/sh
# Arguments: FOLDER ROOT DEADLINE WATCHDOG_SCRIPT CONDITIONS_SCRIPT COMMAND [ARGUMENT ...]
# The job itself. With the trap this shell survives the watchdog's TERM and records how the command ended. The space for
# the exit record and the conditions after the command is reserved first, because the command may fill the disk.
# The last line ends the rest of the group, including this shell: processes that the command left would disturb the next
# session.
# needs: job_common

folder=$1; root=$2; deadline=$3; watchdog_script=$4; conditions_script=$5; shift 5
cd "$folder" && mkdir -p "$root/jobs" || exit 1
trap : TERM
token=$(started $$); note="$root/jobs/$$-$token"
own_session sh -c "$watchdog_script" sh $$ "$token" "$deadline" "$note" &
watchdog=$!
# shellcheck disable=SC2015 # either step that fails ends the job
printf '%64s\n' '' >job/rc.part && printf '%16384s' '' | tr ' ' '\n' >job/after &&
    echo "$$ $(boot) $(now) $watchdog $token" >job/pid.part &&
    cp job/pid.part "$note" && mv job/pid.part job/pid || { kill -KILL "-$watchdog"; exit 1; }
sh -c "$conditions_script" sh "$root" >job/before 2>/dev/null
begin=$(now)
"$@" >stdout.txt 2>stderr.txt
status=$?; end=$(now); date=$(date +%s)
: >job/ended
sh -c "$conditions_script" sh "$root" 2>/dev/null 1<>job/after
finish "$status $begin $end $date"
rm -f "$note"
kill -KILL "-$watchdog"
kill -KILL 0
