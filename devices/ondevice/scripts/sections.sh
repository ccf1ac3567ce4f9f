#!/bin/sh
# say KEY COMMAND ...: print `@KEY` and then what the command prints. A system is recognised by tools that only it has.

say() { key=$1; shift; echo "@$key"; "$@" 2>/dev/null; }
if command -v getprop >/dev/null 2>&1; then system=android
elif command -v sw_vers >/dev/null 2>&1; then system=macos
else system=linux; fi
say system echo "$system"
