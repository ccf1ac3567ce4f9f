#!/bin/sh
# What the device is, in sections that devices/ondevice/facts.py reads.
# needs: sections

section arch uname -m
section hostname hostname
section kernel uname -r
case $system in
macos)
    section version sw_vers
    section sysctl sysctl hw.model hw.memsize hw.ncpu machdep.cpu.brand_string
    section sme sysctl -n hw.optional.arm.FEAT_SME
    section sme2 sysctl -n hw.optional.arm.FEAT_SME2
    ;;
*)
    section cores sh -c 'nproc || grep -c ^processor /proc/cpuinfo'
    section memory grep MemTotal /proc/meminfo
    section cpuinfo sed -nE '/^(Features|model name|Hardware)/p; /^$/q' /proc/cpuinfo
    ;;
esac
case $system in
android)
    section getprop getprop
    ;;
linux)
    section release cat /etc/os-release
    section product cat /sys/class/dmi/id/product_name
    section devicetree sh -c 'tr "\000" "\n" </proc/device-tree/model'
    ;;
esac
true
