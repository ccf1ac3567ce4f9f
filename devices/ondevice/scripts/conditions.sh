#!/bin/sh
# Arguments: ROOT [SECONDS [COMMAND ARGUMENT ...]]
# The current state of the device, in sections that devices/ondevice/conditions.py reads. With SECONDS, `busy` has what the
# processors did during them (macOS: one second), before the rest of the script uses them. COMMAND, if any, is the
# calibration load: it comes last, so that it does not heat what is read.
# needs: sections

counters() { head -n 1 /proc/stat; sleep "$1"; head -n 1 /proc/stat; }
first_line() { line=; read -r line <"$1" || [ -n "$line" ]; }
disk() { df -Pk "$1" || df -Pk "${1%/*}" || df -Pk /; }
load() { first_line /proc/loadavg && echo "$line"; }
memory() {
    while read -r field amount; do
        case $field in MemAvailable: | SwapTotal:) echo "$field $amount" ;; SwapFree:) echo "$field $amount"; return ;; esac
    done </proc/meminfo
}
zones() {
    for zone in /sys/class/thermal/thermal_zone*; do
        first_line "$zone/type"; zone_type=$line
        first_line "$zone/temp"; echo "$zone_type $line"
    done
}
clocks() { for clock in /sys/devices/system/cpu/cpu*/cpufreq/"$1"; do first_line "$clock" && echo "$line"; done; }
supplies() {
    for supply in /sys/class/power_supply/*; do
        first_line "$supply/type"; [ "$line" = Battery ] || continue
        first_line "$supply/capacity" && echo "$line"
        first_line "$supply/status" && echo "$line"
    done
}
root=$1; seconds=$2
if [ "$#" -gt 1 ]; then shift 2; else shift; fi
if [ -n "$seconds" ]; then
    if [ "$system" = macos ]; then section busy top -l 2 -n 0 -s 1; else section busy counters "$seconds"; fi
fi
section disk disk "$root"
case $system in
macos)
    section swap sysctl -n vm.swapusage
    section load sysctl -n vm.loadavg
    section memory vm_stat
    section thermal pmset -g therm
    section battery pmset -g batt
    ;;
*)
    section load load
    section memory memory
    section zones zones
    section governors clocks scaling_governor
    section frequencies clocks scaling_cur_freq
    section kills grep '^oom_kill ' /proc/vmstat
    ;;
esac
case $system in
android)
    section battery dumpsys battery
    section thermal dumpsys thermalservice
    ;;
linux)
    section battery supplies
    ;;
esac
[ "$#" -eq 0 ] || section calibration "$@"
true
