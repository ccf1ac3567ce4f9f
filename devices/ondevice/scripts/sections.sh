#!/bin/sh
# section KEY COMMAND ...: print `@KEY`, then the output of the command. Each system is detected by a tool that only it has.

section() { key=$1; shift; echo "@$key"; "$@" 2>/dev/null; }
if command -v getprop >/dev/null 2>&1; then system=android
elif command -v sw_vers >/dev/null 2>&1; then system=macos
else system=linux; fi
section system echo "$system"
