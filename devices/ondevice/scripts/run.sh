#!/bin/sh
# Arguments: WORKING_FOLDER [NAME=VALUE ...] -- COMMAND [ARGUMENT ...]
# `exec` keeps the process id, so the announced id is the id of the command.

exec </dev/null
if [ -n "$1" ]; then cd "$1" || exit 127; fi
shift
# shellcheck disable=SC2163 # NAME=VALUE as one argument
while [ "$1" != -- ]; do export "$1"; shift; done
shift
exec "$@"
