#!/bin/sh
# Arguments: ROOT
# The current state of the device, in sections that devices/ondevice/conditions.py reads.
# needs: sections

disk() { df -Pk "$1" || df -Pk "${1%/*}" || df -Pk /; }
zones() { for zone in /sys/class/thermal/thermal_zone*; do echo "$(cat "$zone/type") $(cat "$zone/temp")"; done; }
# shellcheck disable=SC2086 # the name of the setting comes from this script
clocks() { cat /sys/devices/system/cpu/cpu*/cpufreq/$1; }
supplies() {
    for supply in /sys/class/power_supply/*; do
        [ "$(cat "$supply/type")" = Battery ] && cat "$supply/capacity" "$supply/status"
    done
}
section disk disk "$1"
case $system in
macos)
    section load sysctl -n vm.loadavg
    section memory vm_stat
    section thermal pmset -g therm
    section battery pmset -g batt
    ;;
*)
    section load cat /proc/loadavg
    section memory grep MemAvailable /proc/meminfo
    section zones zones
    section governors clocks scaling_governor
    section frequencies clocks scaling_cur_freq
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
true
