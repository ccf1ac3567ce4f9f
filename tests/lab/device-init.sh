#!/bin/sh
# Process 1 of a lab device, in its mount, process and host-name namespaces: completes the device's root file system
# and keeps its daemon running, as a phone's init and a Mac's launchd do.
#
#   device-init.sh NAME ROOT PROC COMMAND [ARGUMENT]...
#
# NAME is the host name; ROOT the root file system, complete except for kernel file systems; PROC its folder for
# /proc. A daemon that ended is started again.
name=$1 root=$2 proc=$3
shift 3
set -e
hostname "$name"
while read -r source target; do # trees of packages, read-only; each line is a source and a target
    mount --bind "$source" "$root/$target"
    mount -o remount,bind,ro "$root/$target"
done <"$root/../binds"
mount -t proc proc "$root/$proc"
mount --bind "$root/../boot_id" "$root/$proc/sys/kernel/random/boot_id"
mount -t tmpfs -o mode=755 dev "$root/dev"
mkdir "$root/dev/pts" "$root/dev/shm"
chmod 1777 "$root/dev/shm"
for node in null zero full random urandom tty; do
    : >"$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s "/$proc/self/fd" "$root/dev/fd"
set +e
while :; do
    "$@" &
    wait $!
    sleep 0.1
done
