#!/bin/sh
# Arguments: ROOT
# The current state of the device, in sections that devices/ondevice/conditions.py reads.
# needs: sections

disk() { df -Pk "$1" || df -Pk "${1%/*}" || df -Pk /; }
zones() { for zone in /sys/class/thermal/thermal_zone*; do echo "$(cat "$zone/type") $(cat "$zone/temp")"; done; }
# shellcheck disable=SC2086 # the name of the setting is one of ours
clocks() { cat /sys/devices/system/cpu/cpu*/cpufreq/$1; }
supplies() {
    for supply in /sys/class/power_supply/*; do
        [ "$(cat "$supply/type")" = Battery ] && cat "$supply/capacity" "$supply/status"
    done
}
say disk disk "$1"
case $system in
macos)
    say load sysctl -n vm.loadavg
    say memory vm_stat
    say thermal pmset -g therm
    say battery pmset -g batt
    ;;
*)
    say load cat /proc/loadavg
    say memory grep MemAvailable /proc/meminfo
    say zones zones
    say governors clocks scaling_governor
    say frequencies clocks scaling_cur_freq
    ;;
esac
case $system in
android)
    say battery dumpsys battery
    say thermal dumpsys thermalservice
    ;;
linux)
    say battery supplies
    ;;
esac
true
