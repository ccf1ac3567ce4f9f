#!/bin/sh
# still_ours PID TOKEN: whether the group PID may be killed. It may while its leader is the process that was noted, and also
#     when the leader has ended: the kernel does not reuse an id that still names a group. Sets `leader`.
# finish LINE: write the exit record. It overwrites what was reserved when the job began, because the command may have
#     filled the disk.
# needs: dialect

still_ours() { leader=$(started "$1"); [ -z "$leader" ] || [ "$leader" = "$2" ]; }
finish() { printf '%s\n' "$1" 1<>job/rc.part && mv job/rc.part job/rc; }
