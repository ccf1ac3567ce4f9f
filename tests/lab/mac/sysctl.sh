#!/bin/sh
# Stand-in of the virtual lab for macOS's sysctl: [-n] NAME..., from a list of values and, for the load, the kernel.
lab=/usr/libexec/etfarm-lab
bare=
if [ "$1" = -n ]; then bare=yes; shift; fi
status=0
for name; do
    if [ "$name" = vm.loadavg ]; then
        read -r one five fifteen _ <"$lab/proc/loadavg"
        value="{ $one $five $fifteen }"
    elif ! value=$(grep "^$name: " "$lab/sysctl.txt"); then
        echo "sysctl: unknown oid '$name'" >&2
        status=1
        continue
    fi
    value=${value#"$name: "}
    if [ -n "$bare" ]; then echo "$value"; else echo "$name: $value"; fi
done
exit $status
