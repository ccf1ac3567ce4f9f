#!/bin/sh
# Arguments: FOLDER ROOT MACHINE_FOLDER DEADLINE CONDITIONS_SCRIPT COMMAND [ARGUMENT ...]
# The job itself. With the trap this shell survives the watchdog's TERM and records how the command ended. The space for
# the exit record and the conditions after the command is reserved first, because the command may fill the disk.
# The last line ends the rest of the group, including this shell and its watchdog: processes that the command left would
# disturb the next session.
# needs: job_watchdog

folder=$1; root=$2; machine=$3; deadline=$4; conditions_script=$5; shift 5
had_locale=${LC_ALL+1}; locale=${LC_ALL-}; export LC_ALL=C # tools start a quarter faster
cd "$folder" || exit 1
[ -d "$root/jobs" ] || mkdir -p "$root/jobs" || exit 1
trap : TERM
started $$; token=$started; name=$$-$token; note="$root/jobs/$name"
print_conditions() { eval "$conditions_script"; }
look_beside() { beside "$name" "$1"; echo @beside; echo "$beside"; }
now; since=$now; boot
watch_deadline "$deadline" "$machine" "$name" "$note" &
record="$$ $boot $since $! $token"
# shellcheck disable=SC2015 # either step that fails ends the job
printf '%64s\n' '' >job/rc.part && printf '%16384s' '' >job/after && echo "$record" >"$note" &&
    (echo %before; enter_machine "$machine" && umask 022 && echo "$record $root" >"job-$name" && look_beside) >job/before &&
    echo "$record" >job/pid || kill -KILL 0
print_conditions "$root" >>job/before 2>/dev/null
run_command() {
    if [ -n "$had_locale" ]; then LC_ALL=$locale; else unset LC_ALL; fi
    export ETFARM_JOB="$name."
    exec "$@"
}
last_process; first=$last
now; begin=$now
(run_command "$@") </dev/null >stdout.txt 2>stderr.txt
status=$?; now; end=$now
end_daemons "$name" "$first" "$((${end%.*} - ${begin%.*} + 1))"
: >job/ended
{
    echo %after; print_conditions "$root"
    (enter_machine "$machine" && umask 022 && { hundredths "$since"; look_beside "$hundredths"; note_end "$name" "$note"; })
} 2>/dev/null 1<>job/after
finish "$status $begin $end"
kill -KILL 0
