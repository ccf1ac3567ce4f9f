#!/bin/sh
# Arguments: PID
# Print where a process id is valid (the boot and, on Linux, the namespace of process ids), then the start token of the
# process.
# needs: dialect

boot; started "$1"
echo "$boot $(readlink /proc/self/ns/pid)"; echo "$started"
