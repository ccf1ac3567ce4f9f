#!/bin/sh
# still_ours PID TOKEN: succeed if the group PID may be killed, that is, if its leader is the recorded process or has ended:
#     the kernel does not reuse an id that still names a group. Sets `leader`.
# finish LINE: write the exit record. It overwrites the space reserved at the start of the job, because the command may
#     have filled the disk.
# needs: dialect

still_ours() { leader=$(started "$1"); [ -z "$leader" ] || [ "$leader" = "$2" ]; }
finish() { printf '%s\n' "$1" 1<>job/rc.part && mv job/rc.part job/rc; }
