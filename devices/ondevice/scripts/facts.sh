#!/bin/sh
# What the device is, in sections that devices/ondevice/facts.py reads.
# needs: sections

# The names of symbol versions in the library, found without binutils.
versions_of_libstdcxx() {
    case $(uname -m) in x86_64) processor=x86-64 ;; *) processor=AArch64 ;; esac
    libraries=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p)
    file=$(echo "$libraries" | sed -n "s/.*libstdc++\.so\.6 (libc6,$processor.*=> //p" | head -n 1)
    [ -z "$file" ] || LC_ALL=C tr -cs 'A-Z0-9_.' '\n' <"$file" | grep '^GLIBCXX_[0-9.]*$' | sort -u
}

section arch uname -m
section hostname hostname
section kernel uname -r
case $system in
macos)
    section version sw_vers
    section sysctl sysctl hw.model hw.memsize hw.ncpu machdep.cpu.brand_string \
        hw.perflevel0.physicalcpu hw.perflevel0.cpusperl2
    section sme sysctl -n hw.optional.arm.FEAT_SME
    section sme2 sysctl -n hw.optional.arm.FEAT_SME2
    ;;
*)
    section cores sh -c 'nproc || grep -c ^processor /proc/cpuinfo'
    section memory grep -E '^(MemTotal|SwapTotal):' /proc/meminfo
    section cpuinfo sed -nE '/^(Features|model name|Hardware)/p; /^$/q' /proc/cpuinfo
    ;;
esac
case $system in
android)
    section getprop getprop
    ;;
linux)
    section glibc getconf GNU_LIBC_VERSION
    section glibcxx versions_of_libstdcxx
    section release cat /etc/os-release
    section product cat /sys/class/dmi/id/product_name
    section devicetree sh -c 'tr "\000" "\n" </proc/device-tree/model'
    ;;
esac
true
