#!/bin/sh
# Stand-in of the virtual lab for macOS's vm_stat: this machine's memory in pages of 16 KiB.
free=0 inactive=0
while read -r name kilobytes _; do
    case $name in
    MemFree:) free=$((kilobytes / 16)) ;;
    Inactive:) inactive=$((kilobytes / 16)) ;;
    esac
done </usr/libexec/etfarm-lab/proc/meminfo
echo 'Mach Virtual Memory Statistics: (page size of 16384 bytes)'
printf 'Pages free: %32s.\nPages inactive: %28s.\nPages speculative: %25s.\n' "$free" "$inactive" 0
