#!/bin/sh
# Stand-in of the virtual lab for macOS's pmset: -g therm and -g batt.
case "$1 $2" in
'-g therm') printf 'Note: No %s has been recorded\n' 'thermal warning level' 'performance warning level' ;;
'-g batt')
    echo "Now drawing from 'AC Power'"
    echo ' -InternalBattery-0 (id=1) 100%; charging; 0:40 remaining present: true'
    ;;
*) echo "pmset: unknown option $*" >&2; exit 1 ;;
esac
