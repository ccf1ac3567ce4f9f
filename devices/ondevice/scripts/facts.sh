#!/bin/sh
# What the device is, in sections that devices/ondevice/facts.py reads.
# needs: sections

say arch uname -m
say hostname hostname
say kernel uname -r
case $system in
macos)
    say version sw_vers
    say sysctl sysctl hw.model hw.memsize hw.ncpu machdep.cpu.brand_string
    say sme2 sysctl -n hw.optional.arm.FEAT_SME2
    ;;
*)
    say cores sh -c 'nproc || grep -c ^processor /proc/cpuinfo'
    say memory grep MemTotal /proc/meminfo
    say cpuinfo sed -nE '/^(Features|model name|Hardware)/p; /^$/q' /proc/cpuinfo
    ;;
esac
case $system in
android)
    say getprop getprop
    ;;
linux)
    say release cat /etc/os-release
    say product cat /sys/class/dmi/id/product_name
    say devicetree sh -c 'tr "\000" "\n" </proc/device-tree/model'
    ;;
esac
true
