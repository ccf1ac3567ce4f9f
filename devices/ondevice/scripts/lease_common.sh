#!/bin/sh
# Arguments: LEASE_FOLDER TOKEN ...
# needs: dialect

mkdir -p "$1/holders" && cd "$1" || exit 1
now=$(now); now=${now%%.*}
# shellcheck disable=SC2034 # for the scripts that need this one
here=$(boot)
# shellcheck disable=SC2034 # for the scripts that need this one
token=$2
alone() { [ "$(echo held/*)" = "$1" ]; }
