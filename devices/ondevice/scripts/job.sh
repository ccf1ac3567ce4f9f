#!/bin/sh
# Arguments: FOLDER ROOT MACHINE_FOLDER DEADLINE WATCHDOG_SCRIPT CONDITIONS_SCRIPT COMMAND [ARGUMENT ...]
# The job itself. With the trap this shell survives the watchdog's TERM and records how the command ended. The space for
# the exit record and the conditions after the command is reserved first, because the command may fill the disk.
# The last line ends the rest of the group, including this shell: processes that the command left would disturb the next
# session.
# needs: machine

folder=$1; root=$2; machine=$3; deadline=$4; watchdog_script=$5; conditions_script=$6; shift 6
cd "$folder" && mkdir -p "$root/jobs" || exit 1
trap : TERM
token=$(started $$); name=$$-$token; note="$root/jobs/$name"
on_machine() { (enter_machine "$machine" && "$@"); }
announce() { echo "$1" >"job-$name"; }
# shellcheck disable=SC2120 # an argument to beside only after the command
conditions() { sh -c "$conditions_script" sh "$root"; echo @beside; on_machine beside "$name" "$@"; }
own_session sh -c "$watchdog_script" sh $$ "$token" "$deadline" "$note" "$machine" &
watchdog=$!; since=$(now); line="$$ $(boot) $since $watchdog $token"
# shellcheck disable=SC2015 # either step that fails ends the job
printf '%64s\n' '' >job/rc.part && printf '%16384s' '' >job/after &&
    echo "$line" >job/pid.part && cp job/pid.part "$note" && on_machine announce "$line $root" &&
    mv job/pid.part job/pid || { kill -KILL "-$watchdog"; exit 1; }
conditions >job/before 2>/dev/null
begin=$(now)
(export ETFARM_JOB="$name." && exec "$@") >stdout.txt 2>stderr.txt
status=$?; end=$(now); date=$(date +%s)
end_daemons "$name"
: >job/ended
conditions "$(hundredths "$since")" 2>/dev/null 1<>job/after
on_machine note_end "$name"
finish "$status $begin $end $date"
rm -f "$note"
kill -KILL "-$watchdog"
kill -KILL 0
