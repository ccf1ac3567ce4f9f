#!/bin/sh
# Stand-in of the virtual lab for a Mac's ps, which has no /proc: -o KEYWORD= -p PID with pid, ppid, pgid, state,
# comm or lstart (a text that differs for a later process with the same id).
keyword='' pid=''
while [ $# -gt 0 ]; do
    case $1 in
    -o) keyword=${2%=}; shift 2 ;;
    -p) pid=$2; shift 2 ;;
    *) echo "ps: the stand-in supports -o KEYWORD= and -p PID, not $1" >&2; exit 1 ;;
    esac
done
read -r line 2>/dev/null <"/usr/libexec/etfarm-lab/proc/$pid/stat" || exit 1
comm=${line#*(}
comm=${comm%)*}
# shellcheck disable=SC2086 # one word a field
set -- ${line##*) }
case $keyword in
pid) echo "$pid" ;;
ppid) echo "$2" ;;
pgid) echo "$3" ;;
state | stat) echo "$1" ;;
comm) echo "$comm" ;;
lstart) echo "tick ${20}" ;;
*) echo "ps: $keyword: the stand-in supports pid, ppid, pgid, state, comm, lstart" >&2; exit 1 ;;
esac
