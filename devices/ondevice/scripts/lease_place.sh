#!/bin/sh
# Arguments: PID
# Print where a process id is valid (the boot and, on Linux, the namespace of process ids), then the start token of the
# process.
# needs: dialect

echo "$(boot) $(readlink /proc/self/ns/pid)"; started "$1"
